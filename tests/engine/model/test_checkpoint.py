"""Both formats of one model open to the same thing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES, load_tensors, make_folder, unfuse, write_gguf

from paceline.engine.errors import ModelError
from paceline.engine.model.checkpoint import open_checkpoint


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_is_the_folder_again(family: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", family)
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf"), tmp_path / "cache")
    hf = open_checkpoint(folder, tmp_path / "cache")
    assert checkpoint.name == "tiny"
    for field in ("vocab_size", "num_kv_heads", "head_dim", "tie_embeddings", "qkv_bias", "qk_norm", "context_length"):
        assert getattr(checkpoint.config, field) == getattr(hf.config, field), field
    weights = checkpoint.load()
    assert (weights.lm_head is weights.embed) == FAMILIES[family].get("tie_word_embeddings", False)
    found, expected = unfuse(checkpoint.config, weights), load_tensors(folder)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_a_path_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        open_checkpoint(tmp_path / "none.gguf", tmp_path)
