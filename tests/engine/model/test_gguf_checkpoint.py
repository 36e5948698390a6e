"""GGUF checkpoints load to the weights that the folder they were made from holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from tiny_models import CHAT_TEMPLATE, FAMILIES, SPECIAL, VOCAB, load_tensors, make_folder, unfuse, write_gguf

from paceline.engine.errors import ModelError
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.dequantize import SUPPORTED
from paceline.engine.model.gguf_checkpoint import rotate_half_order

CPU = torch.device("cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_is_the_folder_again(family: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", family)
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf"), tmp_path / "cache")
    hf = open_checkpoint(folder, tmp_path / "cache")
    assert checkpoint.name == "tiny"
    for field in ("vocab_size", "num_kv_heads", "head_dim", "tie_embeddings", "qkv_bias", "qk_norm", "context_length"):
        assert getattr(checkpoint.config, field) == getattr(hf.config, field), field
    weights = checkpoint.load(device=CPU, dtype=torch.float32)
    assert (weights.lm_head is weights.embed) == FAMILIES[family].get("tie_word_embeddings", False)
    found, expected = unfuse(checkpoint.config, weights), load_tensors(folder)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", SUPPORTED)
def test_each_type_dequantises_and_casts(kind: str, dtype: torch.dtype, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama3.1")
    checkpoint = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf", kind), tmp_path / "cache")
    found = unfuse(checkpoint.config, checkpoint.load(device=CPU, dtype=dtype))
    for name, tensor in load_tensors(folder).items():
        expected = tensor
        if tensor.ndim == 2:  # quantisation works along rows, so their order does not matter
            qtype = GGMLQuantizationType[kind]
            expected = torch.from_numpy(dequantize(quantize(tensor.numpy(), qtype), qtype).copy())
        assert found[name].dtype == dtype
        assert torch.equal(found[name], expected.to(dtype)), name


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


def _write(path: Path, metadata: Mapping[str, object], tokens: list[str], types: list[int]) -> Path:
    """A file that keeps its vocabulary and leaves its tensors to a real one."""
    writer = GGUFWriter(path, "llama")
    for key, value in metadata.items():
        writer.add_uint32(key, int(str(value)))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_layer_norm_rms_eps(1e-5)
    eye = np.eye(32, dtype=np.float32)
    writer.add_tensor("token_embd.weight", np.zeros((len(tokens), 32), np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", eye)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", eye[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_text_assets(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    text = open_checkpoint(write_gguf(folder, tmp_path / "tiny.gguf"), tmp_path / "cache").text
    assert text.tokenizer_json is None
    assert text.gguf is not None
    assert len(text.gguf["tokenizer.ggml.tokens"]) == VOCAB
    assert text.chat_template == CHAT_TEMPLATE
    assert (text.bos_token, text.eos_token) == (SPECIAL[1], SPECIAL[2])
    assert text.eos_ids == (2, 0)  # <|im_end|> by its key, <|endoftext|> by its name


def test_only_tokens_that_end_a_turn_are_ends(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "<|im_end|>", "<|eot_id|>", "<|fim_prefix|>", "<|end_of_text|>", "x"]
    types = [2, 3, 3, 1, 3, 3, 4, 1]  # <|im_end|> is an ordinary token here, <|end_of_text|> a user's
    keys = {"tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.bos_token_id": 99}
    text = open_checkpoint(_write(tmp_path / "t.gguf", keys, tokens, types), tmp_path / "cache").text
    assert text.eos_ids == (2, 7, 4)
    assert text.bos_token is None  # out of range
    assert text.chat_template is None


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
