"""What checkpoints of both formats say about text: end tokens, chat template, vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFWriter
from tiny_models import CHAT_TEMPLATE, SPECIAL, VOCAB, make_folder, write_gguf, write_json

from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.hf_folder import HFCheckpoint


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


@pytest.mark.parametrize(
    ("generation", "config", "ids"),
    [
        ({"eos_token_id": [0, 2]}, {"eos_token_id": 2}, (0, 2)),
        ({"eos_token_id": 0}, {"eos_token_id": 2}, (0,)),
        ({}, {"eos_token_id": [2, 3]}, (2, 3)),
        (None, {"eos_token_id": None}, (2,)),  # the tokenizer's <|im_end|>, looked up
    ],
)
def test_end_tokens(generation: Any, config: dict[str, Any], ids: tuple[int, ...], tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2", **config)
    if generation is not None:
        write_json(folder / "generation_config.json", generation)
    assert HFCheckpoint(folder).text.eos_ids == ids


def test_chat_template_sources(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    assert HFCheckpoint(folder).text.chat_template == CHAT_TEMPLATE
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config["chat_template"] = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    config["bos_token"] = {"content": "<|im_start|>", "lstrip": False}
    write_json(path, config)
    text = HFCheckpoint(folder).text
    assert (text.chat_template, text.bos_token, text.eos_token) == ("D", "<|im_start|>", "<|im_end|>")
    del config["chat_template"]
    write_json(path, config)
    write_json(folder / "chat_template.json", {"chat_template": "J"})
    assert HFCheckpoint(folder).text.chat_template == "J"
    (folder / "chat_template.jinja").write_text("jinja")
    assert HFCheckpoint(folder).text.chat_template == "jinja"
