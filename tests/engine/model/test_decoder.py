"""The decoder against an independent implementation in float64: one token after the other, one head at a time."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Mapping
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import RandomCheckpoint
from matrices import dense
from numpy.typing import NDArray

from paceline.engine.model.config import ModelConfig, RopeConfig
from paceline.engine.model.decoder import Decoder, cache_shape, rotation
from paceline.engine.model.weights import Matrix, ModelWeights
from paceline.kernels import backend
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache.reference import TensorCache
from paceline.kernels.linear import ArrayMatrix
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout

Vector = NDArray[np.float64]

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "plain": {},
    "bias": {"qkv_bias": True},
    "head-norms": {"qk_norm": True},
    "both": {"qkv_bias": True, "qk_norm": True},
    "tied": {"tie_embeddings": True},
    "linear-rope": {"rope": RopeConfig(theta=5000.0, scaling="linear", factor=4.0)},
    "scaled-rope": {"rope": RopeConfig(theta=10000.0, attention_scale=1.2)},
    "one-head-each": {"num_heads": 2, "num_kv_heads": 2, "head_dim": 24},
    "one-key-head": {"num_heads": 4, "num_kv_heads": 1, "head_dim": 10},
}


def model(variant: str) -> tuple[ModelConfig, ModelWeights]:
    """A tiny model of the variant; norms are no ones, so that leaving one out shows."""
    checkpoint = RandomCheckpoint(vocab_size=31, context_length=64)
    checkpoint.config = replace(checkpoint.config, **VARIANTS[variant])  # type: ignore[arg-type]
    c = checkpoint.config
    weights = checkpoint.load()
    random = np.random.default_rng(5)

    def around_one(size: int) -> NDArray[np.float32]:
        return 1 + np.float32(0.4) * random.standard_normal(size, np.float32)

    weights.norm = around_one(c.hidden_size)
    for layer in weights.layers:
        layer.attn_norm, layer.ffn_norm = around_one(c.hidden_size), around_one(c.hidden_size)
        if c.qkv_bias:
            layer.qkv_bias = random.standard_normal(c.q_rows + 2 * c.kv_rows, np.float32)
        if c.qk_norm:
            layer.q_norm, layer.k_norm = around_one(c.head_dim), around_one(c.head_dim)
    if c.tie_embeddings:
        weights.lm_head = weights.embed
    return c, weights


def in_float64(weights: ModelWeights) -> Any:
    """The same weights under the same names, as arrays."""

    def arrays(holder: object) -> dict[str, Vector]:
        held = {field.name: getattr(holder, field.name) for field in fields(holder)}  # type: ignore[arg-type]
        values = {name: dense(w).numpy() if isinstance(w, Matrix) else w for name, w in held.items()}
        return {name: w.astype(np.float64) for name, w in values.items() if isinstance(w, np.ndarray)}

    return SimpleNamespace(**arrays(weights), layers=[SimpleNamespace(**arrays(layer)) for layer in weights.layers])


def rms(x: Vector, weight: Vector, eps: float) -> Vector:
    return x / math.sqrt(float(x @ x) / len(x) + eps) * weight


def rotated(x: Vector, position: int, rope: RopeConfig) -> Vector:
    """Each pair (i, i + D/2) as a complex number, turned by position / theta^(2i/D)."""
    half = len(x) // 2
    stretch = rope.factor if rope.scaling == "linear" else 1.0
    turned = [
        complex(x[i], x[i + half]) * cmath.exp(1j * position / stretch * rope.theta ** (-2 * i / len(x)))
        for i in range(half)
    ]
    return rope.attention_scale * np.array([z.real for z in turned] + [z.imag for z in turned])


def expected_states(c: ModelConfig, weights: Any, tokens: list[int]) -> list[list[Vector]]:
    """[layers + 1][R], each [H]: what every token's row is before the first layer and after each."""
    eps, d = c.rms_norm_eps, c.head_dim
    group = c.num_heads // c.num_kv_heads
    states = [weights.embed[token] for token in tokens]
    after = [states[:]]
    for layer in weights.layers:
        queries, keys, values = [], [], []
        for position, x in enumerate(states):
            y = layer.qkv @ rms(x, layer.attn_norm, eps)
            if c.qkv_bias:
                y = y + layer.qkv_bias
            q, k, v = (part.reshape(-1, d) for part in np.split(y, [c.q_rows, c.q_rows + c.kv_rows]))
            if c.qk_norm:
                q = np.array([rms(head, layer.q_norm, eps) for head in q])
                k = np.array([rms(head, layer.k_norm, eps) for head in k])
            queries.append([rotated(head, position, c.rope) for head in q])
            keys.append([rotated(head, position, c.rope) for head in k])
            values.append(v)
        for position, x in enumerate(states):
            heads = []
            for head in range(c.num_heads):
                seen = range(position + 1)
                scores = np.array([keys[p][head // group] @ queries[position][head] for p in seen]) / math.sqrt(d)
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                heads.append(sum(share * values[p][head // group] for share, p in zip(shares, seen, strict=True)))
            x = x + layer.out @ np.concatenate(heads)
            gate, up = np.split(layer.gate_up @ rms(x, layer.ffn_norm, eps), 2)
            states[position] = x + layer.down @ (gate / (1 + np.exp(-gate)) * up)
        after.append(states[:])
    return after


def expected_logits(c: ModelConfig, weights: Any, tokens: list[int]) -> tuple[Vector, Vector]:
    """(logits [V], hidden [H] before the final norm) after the last of the tokens."""
    last = expected_states(c, weights, tokens)[-1][-1]
    return weights.lm_head @ rms(last, weights.norm, c.rms_norm_eps), last


def batch_of(computed: int, tokens: list[int], parents: list[int], blocks: list[int], sampled: list[int]) -> Batch:
    """One sequence: nodes after `computed` slots; a chain when every parent is the node before."""
    depths: list[int] = []
    words: list[int] = []
    for node, parent in enumerate(parents):
        depths.append(0 if parent < 0 else depths[parent] + 1)
        words.append((0 if parent < 0 else words[parent]) | 1 << node)
    causal = all(parent == node - 1 for node, parent in enumerate(parents))
    slots = [blocks[s // BLOCK_SIZE] * BLOCK_SIZE + s % BLOCK_SIZE for s in range(computed, computed + len(tokens))]
    layout = Layout(
        row_starts=np.array([0, len(tokens)], np.int32),
        context_lens=np.array([computed], np.int32),
        block_tables=np.array([blocks], np.int32),
        causal=np.array([causal]),
        ancestors=np.array([0] * len(tokens) if causal else words, np.int64),
    )
    positions = np.array([computed + depth for depth in depths])
    return Batch(np.array(tokens), positions, np.array(slots), np.array(sampled, np.int64), layout)


def new_cache(c: ModelConfig, blocks: int) -> TensorCache:
    cache: TensorCache = backend.load().allocate(cache_shape(c), blocks)
    return cache


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_prompt_in_chunks_then_a_tree(variant: str) -> None:
    c, weights = model(variant)
    exact = in_float64(weights)
    decoder = Decoder(c, weights, backend.load(), context_length=64)
    cache, blocks = new_cache(c, 4), [2, 0, 3]
    pick = random.Random(variant)
    prompt = [pick.randrange(c.vocab_size) for _ in range(21)]

    for start, stop in ((0, 5), (5, 17), (17, 21)):
        tokens = prompt[start:stop]
        chain = list(range(-1, len(tokens) - 1))
        logits, hidden = decoder.forward(batch_of(start, tokens, chain, blocks, [len(tokens) - 1]), cache)
        expected, state = expected_logits(c, exact, prompt[:stop])
        np.testing.assert_allclose(logits[0].numpy(), expected, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(hidden[0].numpy(), state, atol=1e-4, rtol=1e-4)
    assert logits.dtype == torch.float32

    parents = [-1, 0, 0, 1, 2, 2, 5, 0]
    tree = [pick.randrange(c.vocab_size) for _ in parents]
    logits, _ = decoder.forward(batch_of(21, tree, parents, blocks, [0, 3, 6, 7]), cache)
    for row, line in enumerate(([0], [0, 1, 3], [0, 2, 5, 6], [0, 7])):
        expected, _ = expected_logits(c, exact, prompt + [tree[node] for node in line])
        np.testing.assert_allclose(logits[row].numpy(), expected, atol=1e-4, rtol=1e-4)


def test_features_are_sums_of_products_after_the_layers_named() -> None:
    """Of all rows, sampled or not; and logits are the same bits without them."""
    c, weights = model("plain")
    ops, random = backend.load(), np.random.default_rng(2)
    last = c.num_layers
    matrices = [
        {layers: random.standard_normal((width, c.hidden_size), np.float32) for layers in taps}
        for taps, width in (((0, 1, last), 24), ((last,), 7), ((0,), 3))
    ]
    packed = [{layers: ops.pack(ArrayMatrix(matrix)) for layers, matrix in reversed(taps.items())} for taps in matrices]
    plain = Decoder(c, weights, ops, context_length=64)
    tapped = Decoder(c, weights, ops, context_length=64, features=packed)
    tokens = [3, 1, 4, 1, 5, 9]
    batch = batch_of(0, tokens, list(range(-1, 5)), [0], [5, 2])
    logits, hidden, *features = tapped.forward(batch, new_cache(c, 1))
    for got, want in zip((logits, hidden), plain.forward(batch, new_cache(c, 1)), strict=True):
        assert torch.equal(got, want)
    states = [np.array(rows) for rows in expected_states(c, in_float64(weights), tokens)]
    assert len(features) == len(matrices)
    for got, taps in zip(features, matrices, strict=True):
        want = sum(states[layers] @ matrix.T.astype(np.float64) for layers, matrix in taps.items())
        np.testing.assert_allclose(got.numpy(), want, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("layers", [[-1], [0, 99], []])
def test_features_after_layers_that_are_not_there_are_an_error(layers: list[int]) -> None:
    c, weights = model("plain")
    ops = backend.load()
    weight = ops.pack(ArrayMatrix(np.ones((2, c.hidden_size), np.float32)))
    with pytest.raises(ValueError, match=f"after 0 to {c.num_layers} layers"):
        Decoder(c, weights, ops, context_length=64, features=[dict.fromkeys(layers, weight)])


def test_no_sampled_rows_no_logits() -> None:
    c, weights = model("plain")
    decoder = Decoder(c, weights, backend.load(), context_length=64)
    logits, hidden = decoder.forward(batch_of(0, [1, 2], [-1, 0], [0], []), new_cache(c, 1))
    assert (tuple(logits.shape), tuple(hidden.shape)) == ((0, c.vocab_size), (0, c.hidden_size))


def test_only_the_slots_of_the_rows_are_written() -> None:
    c, weights = model("plain")
    decoder = Decoder(c, weights, backend.load(), context_length=64)
    cache = new_cache(c, 4)
    decoder.forward(batch_of(3, [1, 2], [-1, 0], [2], [1]), cache)
    written = cache.k.abs().sum(dim=(0, 2, 3)).nonzero().flatten().tolist()
    assert written == [2 * BLOCK_SIZE + 3, 2 * BLOCK_SIZE + 4]


def test_far_positions_keep_their_phase() -> None:
    """At position 100,000 an angle kept in float32 is off by 4e-3 radians."""
    c, _ = model("plain")
    tables = rotation(c.rope, c.head_dim, 100_001, lambda values: values)
    assert tables.cos.shape == (100_001, c.head_dim // 2)
    for position in (0, 1, 99_999, 100_000):
        for pair in range(c.head_dim // 2):
            angle = position * 10000.0 ** (-2 * pair / c.head_dim)
            assert float(tables.cos[position, pair]) == pytest.approx(math.cos(angle), abs=1e-6)
            assert float(tables.sin[position, pair]) == pytest.approx(math.sin(angle), abs=1e-6)
