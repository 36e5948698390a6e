from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from equality import VOCAB
from fakes import RandomCheckpoint
from tiny_heads import heads_tensors, write_own, write_published

from paceline.engine.drafter_file import DrafterFile
from paceline.engine.errors import ModelError
from paceline.engine.heads_file import read_hydra, read_medusa

TARGET = RandomCheckpoint(VOCAB).config
HIDDEN = TARGET.hidden_size


@pytest.mark.parametrize("pickled", [True, False])
@pytest.mark.parametrize("prefix", ["", "medusa_head."])
@pytest.mark.parametrize("layers", [1, 2])
def test_published_heads(tmp_path: Path, pickled: bool, prefix: str, layers: int) -> None:
    tensors = heads_tensors(HIDDEN, heads=4, layers=layers, guessable=VOCAB)
    named = {f"{prefix}{name}": tensor for name, tensor in tensors.items()}
    weights = read_medusa(DrafterFile(write_published(tmp_path / "m", named, pickled=pickled)), TARGET)
    assert [len(blocks) for blocks in weights.heads] == [layers] * 4, "the file counts, not its config"
    assert weights.vocabulary is None
    assert weights.outs is not None
    tolerance = 1e-2 if pickled else 0.0  # the pickle holds 16 bits
    for head in range(4):
        block = weights.heads[head][-1]
        assert np.allclose(block.weight, tensors[f"{head}.{layers - 1}.linear.weight"], atol=tolerance)
        assert np.allclose(block.bias, tensors[f"{head}.{layers - 1}.linear.bias"], atol=tolerance)
        assert block.skip is None
        assert np.allclose(weights.outs[head], tensors[f"{head}.{layers}.weight"], atol=tolerance)


def test_our_own_share_the_targets_rows(tmp_path: Path) -> None:
    folder = write_own(tmp_path / "m", "PacelineMedusa", heads_tensors(HIDDEN), [2, 5, 96])
    weights = read_medusa(DrafterFile(folder), TARGET)
    assert weights.vocabulary is not None
    assert weights.vocabulary.tolist() == [2, 5, 96]
    assert weights.outs is None


def test_hydra_reads_one_embedding_more_per_head(tmp_path: Path) -> None:
    tensors = heads_tensors(HIDDEN, layers=2, hydra=True)
    weights = read_hydra(DrafterFile(write_own(tmp_path / "h", "PacelineHydra", tensors)), TARGET)
    for head, (first, second) in enumerate(weights.heads):
        assert first.weight.shape == (HIDDEN, (head + 2) * HIDDEN)
        assert first.skip is not None
        assert first.skip_bias is not None
        assert np.array_equal(first.skip, tensors[f"{head}.0.res_connection.weight"])
        assert second.skip is None


@pytest.mark.parametrize(
    ("hidden", "guessable", "vocabulary", "words"),
    [
        (HIDDEN + 16, None, None, f"hidden states of size {HIDDEN + 16}, but this model's have {HIDDEN}"),
        (HIDDEN, VOCAB + 3, None, f"among {VOCAB + 3} tokens, but this model has {VOCAB}"),
        (HIDDEN, None, [1, VOCAB], f"guesses token {VOCAB}, but this model has {VOCAB} tokens"),
        (HIDDEN, None, [4, 3], "not ascending"),
        (HIDDEN, 5, [1, 2, 3], "has the shape [5, 48] where [3, 48] is needed"),
    ],
)
def test_heads_of_another_model_are_refused(
    tmp_path: Path, hidden: int, guessable: int | None, vocabulary: list[int] | None, words: str
) -> None:
    tensors = heads_tensors(hidden, guessable=guessable)
    file = DrafterFile(write_own(tmp_path / "m", "PacelineMedusa", tensors, vocabulary))
    with pytest.raises(ModelError) as caught:
        read_medusa(file, TARGET)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_heads_are_refused(tmp_path: Path) -> None:
    tensors = heads_tensors(HIDDEN, guessable=VOCAB)
    for missing in ("0.0.linear.weight", "1.0.linear.bias", "2.1.weight"):
        left = {name: tensor for name, tensor in tensors.items() if name != missing}
        with pytest.raises(ModelError, match=r"is damaged|are damaged"):
            read_medusa(DrafterFile(write_own(tmp_path / missing, "PacelineMedusa", left)), TARGET)
    with pytest.raises(ModelError, match="needed"):
        read_hydra(DrafterFile(write_own(tmp_path / "h", "PacelineHydra", tensors)), TARGET)
    folder = write_published(tmp_path / "cut", tensors)
    path = folder / "medusa_lm_head.pt"
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(ModelError, match="damaged"):
        read_medusa(DrafterFile(folder), TARGET)


def test_a_vocabulary_of_anything_but_whole_numbers_is_refused(tmp_path: Path) -> None:
    tensors = {**heads_tensors(HIDDEN), "vocabulary": torch.tensor([1.0, 2.5])}
    with pytest.raises(ModelError, match="must hold whole numbers"):
        read_medusa(DrafterFile(write_own(tmp_path / "m", "PacelineMedusa", tensors)), TARGET)
