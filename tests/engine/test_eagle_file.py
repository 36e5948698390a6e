from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from equality import VOCAB
from fakes import RandomCheckpoint
from safetensors.torch import load_file, save_file
from tiny_heads import write_eagle

from paceline.engine.drafter_file import DrafterFile
from paceline.engine.eagle_file import read_eagle
from paceline.engine.errors import ModelError
from paceline.engine.model.config import ModelConfig
from paceline.spec.eagle import EagleWeights

TARGET = RandomCheckpoint(VOCAB).config
HIDDEN = TARGET.hidden_size
ABSENT = object()

Tensors = dict[str, torch.Tensor | None]


def write(folder: Path, settings: dict[str, Any] | None = None, tensors: Tensors | None = None) -> Path:
    """A drafter that fits, but for these. ABSENT takes a setting out, None a tensor."""
    write_eagle(folder, TARGET)
    config = {**json.loads((folder / "config.json").read_bytes()), **(settings or {})}
    config = {name: value for name, value in config.items() if value is not ABSENT}
    (folder / "config.json").write_text(json.dumps(config))
    held = {**load_file(folder / "model.safetensors"), **(tensors or {})}
    save_file({name: tensor for name, tensor in held.items() if tensor is not None}, folder / "model.safetensors")
    return folder


def read(folder: Path, target: ModelConfig = TARGET) -> EagleWeights:
    return read_eagle(DrafterFile(folder), target)


def refusal(folder: Path, target: ModelConfig = TARGET) -> str:
    with pytest.raises(ModelError) as caught:
        read(folder, target)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert str(folder) in message
    return message


def published(target: ModelConfig, guessable: list[int], dtype: torch.dtype = torch.float16) -> tuple[Any, Tensors]:
    """As yuhuili/EAGLE3-LLaMA3.1-Instruct-8B is: no taps, fewer tokens by d2t, 16 bits, and t2d, which is not read."""
    generator = torch.Generator().manual_seed(1)
    tensors: Tensors = {
        "fc.weight": torch.randn((HIDDEN, 3 * HIDDEN), generator=generator).to(dtype),
        "lm_head.weight": torch.randn((len(guessable), HIDDEN), generator=generator).to(dtype),
        "d2t": torch.tensor(guessable) - torch.arange(len(guessable)),
        "t2d": torch.tensor([token in guessable for token in range(target.vocab_size)]),
    }
    return {"taps": ABSENT, "draft_vocab_size": len(guessable), "num_hidden_layers": 1}, tensors


@pytest.mark.parametrize(("layers", "taps"), [(30, (2, 15, 27)), (32, (2, 16, 29)), (7, (2, 3, 4))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_published_layout(tmp_path: Path, layers: int, taps: tuple[int, ...], dtype: torch.dtype) -> None:
    settings, tensors = published(TARGET, [1, 2, 50, VOCAB - 1], dtype)
    folder = write(tmp_path / "e", settings, tensors)
    weights = read(folder, replace(TARGET, num_layers=layers))
    assert weights.taps == taps
    assert weights.vocabulary.tolist() == [1, 2, 50, VOCAB - 1]
    assert weights.embed is None, "the target's own rows serve"
    fc, head = tensors["fc.weight"], tensors["lm_head.weight"]
    assert fc is not None
    assert head is not None
    assert np.array_equal(np.concatenate(weights.projections, axis=1), fc.float().numpy())
    assert weights.head is not None
    assert np.array_equal(weights.head, head.float().numpy())
    held = load_file(folder / "model.safetensors")
    layer = {name.removeprefix("midlayer."): tensor.numpy() for name, tensor in held.items() if "midlayer" in name}
    qkv = np.concatenate([layer[f"self_attn.{name}_proj.weight"] for name in "qkv"])
    assert np.array_equal(weights.qkv_embed, qkv[:, :HIDDEN]), "the embedding comes first"
    assert np.array_equal(weights.qkv_hidden, qkv[:, HIDDEN:])
    assert np.array_equal(
        weights.gate_up, np.concatenate([layer[f"mlp.{name}_proj.weight"] for name in ("gate", "up")])
    )
    assert np.array_equal(weights.down, layer["mlp.down_proj.weight"])
    assert np.array_equal(weights.out, layer["self_attn.o_proj.weight"])
    assert (weights.kv_heads, weights.head_dim) == (TARGET.num_kv_heads, TARGET.head_dim)
    assert (weights.eps, weights.rope_theta) == (1e-6, 10000.0)


def test_norms_go_where_their_names_say(tmp_path: Path) -> None:
    names = {
        "embed_norm": "midlayer.input_layernorm.weight",
        "hidden_norm": "midlayer.hidden_norm.weight",
        "ffn_norm": "midlayer.post_attention_layernorm.weight",
        "norm": "norm.weight",
    }
    tensors: Tensors = {name: torch.full((HIDDEN,), float(i)) for i, name in enumerate(names.values())}
    weights = read(write(tmp_path / "e", {"rms_norm_eps": 1e-5, "rope_theta": 500000}, tensors))
    assert [getattr(weights, field)[0] for field in names] == [0, 1, 2, 3]
    assert (weights.eps, weights.rope_theta) == (1e-5, 500000)


def test_ours_name_their_taps_and_share_the_targets_rows(tmp_path: Path) -> None:
    d2t: Tensors = {"d2t": torch.tensor([5, 5, 7]), "lm_head.weight": None}
    weights = read(write(tmp_path / "e", {"taps": [0, 2], "draft_vocab_size": 3}, d2t))
    assert weights.taps == (0, 2)
    assert weights.vocabulary.tolist() == [5, 6, 9]
    assert weights.head is None
    assert weights.embed is None


def test_all_tokens_are_guessable_where_the_config_says_nothing_else(tmp_path: Path) -> None:
    weights = read(write(tmp_path / "e", {"draft_vocab_size": None, "target_hidden_size": None}))
    assert weights.vocabulary.tolist() == list(range(VOCAB))


def test_own_embeddings_are_read(tmp_path: Path) -> None:
    embed = torch.randn(VOCAB, HIDDEN)
    weights = read(write(tmp_path / "e", tensors={"embed_tokens.weight": embed.bfloat16()}))
    assert weights.embed is not None
    assert np.array_equal(weights.embed, embed.bfloat16().float().numpy())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden_size": HIDDEN + 2}, f"hidden states of size {HIDDEN + 2}, but this model's have {HIDDEN}; it was"),
        ({"target_hidden_size": 64}, f"hidden states of size 64, but this model's have {HIDDEN}; it was made for"),
        ({"vocab_size": VOCAB + 1}, f"guesses among {VOCAB + 1} tokens, but this model has {VOCAB}; it was made for"),
        ({"draft_vocab_size": VOCAB + 1}, f"guesses among {VOCAB + 1} tokens, but its model has {VOCAB}"),
        ({"draft_vocab_size": 10**30}, f"but its model has {VOCAB}"),
        ({"draft_vocab_size": 3}, "The tensor d2t is missing"),
        ({"num_hidden_layers": 2}, "asks for 2 layers, where one is supported"),
        ({"num_attention_heads": True}, "has True as num_attention_heads, which must be a whole number above 0"),
        ({"num_key_value_heads": 4}, "6 attention heads and 4 key-value heads of size 8; the first must be"),
        ({"num_attention_heads": HIDDEN + 1, "head_dim": ABSENT, "num_key_value_heads": 1}, "has 0 as head_dim"),
        ({"head_dim": 7}, "2 key-value heads of size 7; the first must be"),
        ({"head_dim": 16}, "has the shape [48, 96] where [96, 96] is needed"),
        ({"intermediate_size": 7.5}, "has 7.5 as intermediate_size, which must be a whole number above 0"),
        ({"intermediate_size": ABSENT}, "does not say intermediate_size"),
        ({"rms_norm_eps": "small"}, "has 'small' as rms_norm_eps, which must be a number above 0"),
        ({"rope_theta": 0}, "has 0 as rope_theta, which must be a number above 0"),
        ({"taps": [0, 3]}, "reads hidden states after 3 layers, but this model has 2; it was made for another model"),
        ({"taps": [-1, 0]}, "reads hidden states after -1 layers"),
        ({"taps": ABSENT}, "this model has only 2 layers; it was made for another model"),
        *(
            ({"taps": taps}, f"has {taps!r} as taps, which must be whole numbers, each once")
            for taps in ([1, 1], [], [0.5], [True, 0], ["1"], [[1]], "01", 1, {})
        ),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    assert words in refusal(write(tmp_path / "e", settings))


@pytest.mark.parametrize("layers", [4, 5, 6])
def test_the_usual_taps_need_a_model_of_seven_layers(tmp_path: Path, layers: int) -> None:
    """Else two of them are the same."""
    folder = write(tmp_path / "e", *published(TARGET, [1, 2, 3]))
    assert f"this model has only {layers} layers" in refusal(folder, replace(TARGET, num_layers=layers))


@pytest.mark.parametrize(
    ("d2t", "words"),
    [
        ([0, 0, VOCAB - 2], "names tokens that do not exist; it is damaged"),
        ([-1, 0, 0], "names tokens that do not exist; it is damaged"),
        ([2**63 - 1, 2**63 - 1, 2**63 - 1], "names tokens that do not exist; it is damaged"),
        ([0, 1, 0], "must name each token once, in ascending order"),
        ([4, 2, 2], "must name each token once, in ascending order"),
        ([0.0, 1.0, 1.0], "must hold whole numbers"),
        ([0, 0, 0, 0], "has the shape [4] where [3] is needed"),
    ],
)
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, d2t: list[float], words: str) -> None:
    assert words in refusal(write(tmp_path / "e", {"draft_vocab_size": 3}, {"d2t": torch.tensor(d2t)}))


NEEDED = sorted(
    [
        "fc.weight",
        "norm.weight",
        *(f"midlayer.{name}.weight" for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm")),
        *(f"midlayer.self_attn.{name}_proj.weight" for name in "qkvo"),
        *(f"midlayer.mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
    ]
)


@pytest.mark.parametrize("name", NEEDED)
def test_every_tensor_is_needed_in_its_shape(tmp_path: Path, name: str) -> None:
    assert f"The tensor {name} is missing" in refusal(write(tmp_path / "e", tensors={name: None}))
    assert f"The tensor {name} of the drafter" in refusal(write(tmp_path / "e", tensors={name: torch.zeros(2, 3)}))


@pytest.mark.parametrize("name", ["embed_tokens.weight", "lm_head.weight"])
def test_rows_of_its_own_have_its_shape(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "e", tensors={name: torch.zeros(VOCAB, HIDDEN + 2)})
    assert f"[{VOCAB}, {HIDDEN + 2}] where [{VOCAB}, {HIDDEN}] is needed" in refusal(folder)


@pytest.mark.parametrize("name", ["embed_tokens.weight", "lm_head.weight"])
def test_a_drafter_of_another_width_needs_rows_of_its_own(tmp_path: Path, name: str) -> None:
    """Its own hidden states are 32 wide, the target's rows 48."""
    wide = replace(TARGET, hidden_size=32)
    folder = write_eagle(tmp_path / "e", wide)
    held: Tensors = {**load_file(folder / "model.safetensors"), "fc.weight": torch.ones(32, 2 * HIDDEN)}
    held["embed_tokens.weight"] = torch.ones(VOCAB, 32)
    save_file({key: tensor for key, tensor in held.items() if tensor is not None}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, "target_hidden_size": HIDDEN}))
    weights = read(folder)
    assert weights.embed is not None
    assert weights.projections[0].shape == (32, HIDDEN)
    left = {key: tensor for key, tensor in held.items() if tensor is not None and key != name}
    save_file(left, folder / "model.safetensors")
    assert f"The tensor {name} is missing" in refusal(folder)
