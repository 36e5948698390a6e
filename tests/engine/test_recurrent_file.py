"""Recurrent drafters' files: what is read, and what is refused with its name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from equality import VOCAB
from fakes import RandomCheckpoint
from safetensors.torch import load_file, save_file
from tiny_heads import write_recurrent

from paceline.engine.drafter_file import DrafterFile
from paceline.engine.errors import ModelError
from paceline.engine.recurrent_file import read_recurrent

TARGET = RandomCheckpoint(VOCAB).config
HIDDEN = TARGET.hidden_size


def test_weights_are_the_files(tmp_path: Path) -> None:
    folder = write_recurrent(tmp_path, TARGET, [2, 3, 7], rms_norm_eps=1e-5)
    held, weights = load_file(folder / "model.safetensors"), read_recurrent(DrafterFile(folder), TARGET)
    assert weights.vocabulary.tolist() == [2, 3, 7]
    assert weights.eps == 1e-5
    assert np.array_equal(weights.mix, held["mix.weight"].numpy())
    gates = torch.cat([held["mlp.gate_proj.weight"], held["mlp.up_proj.weight"]])
    assert np.array_equal(weights.gate_up, gates.numpy())
    assert np.array_equal(weights.mlp_norm, held["mlp_norm.weight"].numpy())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"hidden_size": HIDDEN * 2}, f"size {HIDDEN * 2}, but this model's have {HIDDEN}"),
        ({"vocab_size": VOCAB + 1}, f"among {VOCAB + 1} tokens, but this model has {VOCAB}"),
        ({"draft_vocab_size": VOCAB + 1}, f"among {VOCAB + 1} tokens, but its model has {VOCAB}"),
        ({"intermediate_size": 3}, "mlp.gate_proj.weight"),
        ({"intermediate_size": None}, "does not say intermediate_size"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, settings: dict[str, int | None], says: str) -> None:
    folder = write_recurrent(tmp_path, TARGET, [2, 3, 7])
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))
    with pytest.raises(ModelError, match=says):
        read_recurrent(DrafterFile(folder), TARGET)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    folder = write_recurrent(tmp_path, TARGET)
    held = load_file(folder / "model.safetensors")
    held["norm.weight"] = held["norm.weight"].double()
    held["norm.weight"][3] = value
    save_file(held, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"norm\.weight .* not finite"):
        read_recurrent(DrafterFile(folder), TARGET)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    folder = write_recurrent(tmp_path, TARGET)
    held = load_file(folder / "model.safetensors")
    del held["mix.weight"]
    save_file(held, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"mix\.weight is missing"):
        read_recurrent(DrafterFile(folder), TARGET)
