"""GGUF checkpoints load to the weights that the folder they were made from holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from tiny_models import load_tensors, make_folder, unfuse, write_gguf

from paceline.engine.errors import ModelError
from paceline.engine.model import gguf_checkpoint
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.dequantize import SUPPORTED
from paceline.engine.model.gguf_checkpoint import rotate_half_order


@pytest.mark.parametrize("kind", SUPPORTED)
def test_each_type_dequantises(kind: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama3.1")
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf", kind), tmp_path / "cache")
    found = unfuse(checkpoint.config, checkpoint.load())
    for name, tensor in load_tensors(folder).items():
        expected = tensor
        if tensor.ndim == 2:  # quantisation works along rows, so their order does not matter
            qtype = GGMLQuantizationType[kind]
            expected = torch.from_numpy(dequantize(quantize(tensor.numpy(), qtype), qtype).copy())
        assert torch.equal(found[name], expected), name


def test_pieces_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors larger than one piece: here seven rows of the hidden size."""
    folder = make_folder(tmp_path / "tiny", "llama2")
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf"), tmp_path / "cache")
    monkeypatch.setattr(gguf_checkpoint, "_PIECE", 7 * 64)
    found = unfuse(checkpoint.config, checkpoint.load())
    for name, tensor in load_tensors(folder).items():
        assert torch.equal(found[name], tensor), name


def test_rope_scaling_of_llama31_comes_as_factors(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama3.1")
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf"), tmp_path / "cache")
    factors = checkpoint.config.rope.factors
    assert factors is not None
    assert len(factors) == checkpoint.config.head_dim // 2
    assert max(factors) == pytest.approx(8.0)
    assert min(factors) == 1.0


def test_row_order() -> None:
    # Two heads of four rows: pairs (0, 1) and (2, 3) become (0, 2) and (1, 3).
    assert rotate_half_order(2, 4).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def _rename(path: Path, old: str, new: str) -> None:
    assert len(old) == len(new)
    data = path.read_bytes()
    assert data.count(old.encode()) == 1
    path.write_bytes(data.replace(old.encode(), new.encode()))


def test_missing_and_unexpected_tensors_are_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    path = write_gguf(folder, tmp_path / "tiny.gguf")
    _rename(path, "blk.1.ffn_down.weight", "blk.1.ffn_gone.weight")
    with pytest.raises(ModelError, match=r"model\.layers\.1\.mlp\.down_proj\.weight is missing"):
        open_checkpoint(path, tmp_path / "cache")
    write_gguf(make_folder(tmp_path / "qwen3", "qwen3"), path)
    _rename(path, "blk.1.attn_q_norm.weight", "blk.1.attn_sinksx.weight")
    with pytest.raises(ModelError, match=r"q_norm\.weight is missing"):
        open_checkpoint(path, tmp_path / "cache")


def test_a_tensor_that_would_be_ignored_is_refused(tmp_path: Path) -> None:
    path = write_gguf(make_folder(tmp_path / "qwen2", "qwen2"), tmp_path / "tiny.gguf")
    # Without a bias in layer 0 the file says it has none, so the one of layer 1 belongs nowhere.
    _rename(path, "blk.0.attn_q.bias", "blk.0.attn_k.xxxx")
    with pytest.raises(ModelError, match=r"not supported"):
        open_checkpoint(path, tmp_path / "cache")


def test_unsupported_type_is_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    path = write_gguf(folder, tmp_path / "tiny.gguf", "Q5_0")
    with pytest.raises(ModelError, match=r"token_embd\.weight.*Q5_0.*F32, F16, BF16, Q4_0, Q4_1, Q8_0"):
        open_checkpoint(path, tmp_path / "cache")


def test_wrong_shape_is_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    path = write_gguf(folder, tmp_path / "tiny.gguf")
    data = path.read_bytes()
    key = b"llama.feed_forward_length"
    at = data.index(key) + len(key) + 4
    path.write_bytes(data[:at] + (128).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(ModelError, match=r"gate_proj\.weight .* \[96, 64\] .* \[128, 64\]"):
        open_checkpoint(path, tmp_path / "cache")
