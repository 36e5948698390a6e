"""Hugging Face folders: whole, sharded, incomplete and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny_models import (
    FAMILIES,
    hf_config,
    load_tensors,
    make_folder,
    reference_library,
    unfuse,
)

from paceline.engine.errors import ModelError
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.hf_folder import HFCheckpoint, is_complete


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_all_there(family: str, shards: int, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", family, shards=shards)
    checkpoint = open_checkpoint(folder, tmp_path / "cache")
    assert checkpoint.name == "tiny"
    weights = checkpoint.load()
    assert (weights.lm_head is weights.embed) == checkpoint.config.tie_embeddings
    found, expected = unfuse(checkpoint.config, weights), load_tensors(folder)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("stored", [torch.float32, torch.float16, torch.bfloat16])
def test_each_type_is_read_to_float32(stored: torch.dtype, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "qwen2")
    tensors = {name: tensor.to(stored) for name, tensor in load_tensors(folder).items()}
    save_file(tensors, folder / "model.safetensors")
    checkpoint = HFCheckpoint(folder)
    found = unfuse(checkpoint.config, checkpoint.load())
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor.float()), name


@pytest.mark.parametrize("tied", [False, True])
def test_a_folder_that_transformers_saved(tied: bool, tmp_path: Path) -> None:
    with reference_library() as transformers:
        raw = hf_config("llama3.1", tie_word_embeddings=tied)
        config = transformers.LlamaConfig(**{k: v for k, v in raw.items() if k != "model_type"})
        model = transformers.LlamaForCausalLM(config)
        model.save_pretrained(tmp_path / "saved", max_shard_size="100KB")
    (tmp_path / "saved" / "tokenizer.json").write_text("{}")
    assert (tmp_path / "saved" / "model.safetensors.index.json").exists()
    checkpoint = HFCheckpoint(tmp_path / "saved")
    assert checkpoint.config.tie_embeddings == tied
    assert checkpoint.config.rope.scaling == "llama3"
    found = unfuse(checkpoint.config, checkpoint.load())
    for name, tensor in model.state_dict().items():
        if name in found:
            assert torch.equal(found[name], tensor), name
        else:
            assert (tied, name) == (True, "lm_head.weight")


def test_tied_models_may_store_the_head_twice(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "qwen2")
    tensors = load_tensors(folder)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    save_file(tensors, folder / "model.safetensors")
    weights = HFCheckpoint(folder).load()
    assert weights.lm_head is weights.embed


def test_missing_tensor_wrong_shape_extra_tensor(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    whole = load_tensors(folder)
    name = "model.layers.1.mlp.up_proj.weight"
    for tensors, words in (
        ({k: v for k, v in whole.items() if k != name}, f"{name} is missing"),
        ({**whole, name: torch.zeros(95, 64)}, r"\[95, 64\].*\[96, 64\]"),
        ({**whole, name: whole[name].to(torch.int8)}, "type I8"),
        ({**whole, "model.layers.1.self_attn.sinks": torch.zeros(4)}, r"self_attn\.sinks .* not supported"),
    ):
        save_file(tensors, folder / "model.safetensors")
        with pytest.raises(ModelError, match=words):
            HFCheckpoint(folder)


def test_missing_shard(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2", shards=3)
    assert is_complete(folder)
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert not is_complete(folder)
    with pytest.raises(ModelError, match=r"shard model-00002-of-00003\.safetensors is missing"):
        HFCheckpoint(folder)


def test_an_index_that_names_another_shard(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2", shards=2)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    name = "model.embed_tokens.weight"
    index["weight_map"][name] = next(
        shard for shard in index["weight_map"].values() if shard != index["weight_map"][name]
    )
    path.write_text(json.dumps(index))
    with pytest.raises(ModelError, match=f"does not say which shard holds the tensor {name}"):
        HFCheckpoint(folder)


def test_truncated_weights(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2", shards=2)
    path = folder / "model-00002-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"model-00002-of-00002\.safetensors is damaged or truncated"):
        HFCheckpoint(folder)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", None, r"has no config\.json"),
        ("config.json", "{", r"config\.json is not valid JSON"),
        ("config.json", "[]", r"config\.json must hold a JSON object"),
        ("tokenizer.json", None, r"has no tokenizer\.json"),
        ("model.safetensors", None, r"only safetensors"),
        ("model.safetensors", "", r"damaged or truncated"),
        ("model.safetensors.index.json", '{"x": 1}', r"no weight_map"),
        ("model.safetensors.index.json", '{"weight_map": {"a": "../b"}}', r"not a file of the folder"),
        ("config.json", json.dumps(hf_config("llama2", rms_norm_eps="x")), "rms_norm_eps must be a number"),
        ("config.json", json.dumps(hf_config("llama2", rope_theta=[1])), "rope_theta must be a number"),
        ("config.json", json.dumps(hf_config("llama2", rope_scaling="x")), "must be JSON objects"),
        ("tokenizer_config.json", "nonsense", r"tokenizer_config\.json is not valid JSON"),
    ],
)
def test_what_is_wrong_with_a_folder(file: str, content: str | None, words: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "llama2")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(ModelError, match=words) as caught:
        HFCheckpoint(folder)
    assert "\n" not in str(caught.value)


def test_a_hub_snapshot_is_called_by_its_id(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "models--org--some-model" / "snapshots" / "0123abc", "llama2")
    assert HFCheckpoint(folder).name == "org/some-model"
