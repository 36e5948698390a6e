"""A pass over trees and chunks computes what the model computes for each path alone, also after moving entries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from equality import Oracle
from fakes import RandomCheckpoint, make_request
from matrices import dense

from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.engine.page_table import PageTable
from paceline.engine.runner import Runner
from paceline.engine.scheduler import Plan, Row
from paceline.engine.sequence import Sequence
from paceline.kernels import backend
from paceline.kernels.kv_cache.reference import TensorCache
from paceline.kernels.linear import ArrayMatrix
from paceline.spec.tree import TokenTree

PROMPT = tuple(range(3, 25))
# Off the line in both directions: the path 0, 2, 5, 6 needs two moves that overlap.
TREE = TokenTree((30, 31, 32, 33, 34, 35, 36, 37), (-1, 0, 0, 1, 1, 2, 5, 5))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(61, context_length=128)


@pytest.fixture(scope="module")
def oracle(checkpoint: RandomCheckpoint) -> Oracle:
    return Oracle(checkpoint)


@pytest.fixture
def cache(checkpoint: RandomCheckpoint) -> TensorCache:
    cache: TensorCache = backend.load().allocate(cache_shape(checkpoint.config), 12)
    return cache


@pytest.fixture
def runner(checkpoint: RandomCheckpoint, cache: TensorCache) -> Runner:
    ops = backend.load()
    return Runner(Decoder(checkpoint.config, checkpoint.load(), ops, context_length=128), cache, ops)


def start(pages: PageTable, prompt: tuple[int, ...] = PROMPT) -> Sequence:
    seq = Sequence(make_request("r", prompt), arrival=0)
    pages.reserve(seq, 64)
    return seq


def prefill(runner: Runner, pages: PageTable, seq: Sequence) -> torch.Tensor:
    """The whole prompt in one chunk; returns logits [1, V]."""
    chunk = TokenTree.chain(tuple(seq.tokens))
    logits: torch.Tensor = runner.forward(Plan([Row(seq, len(chunk), samples=True)]), [chunk]).logits
    pages.commit(seq, range(len(chunk)))
    pages.reserve(seq, 40)
    return logits


def path_tokens(tree: TokenTree, node: int) -> list[int]:
    tokens = []
    while node >= 0:
        tokens.append(tree.tokens[node])
        node = tree.parents[node]
    return tokens[::-1]


def test_every_node_of_a_tree_is_computed_as_its_path_alone(runner: Runner, oracle: Oracle) -> None:
    pages = PageTable(12)
    seq = start(pages)
    assert torch.allclose(prefill(runner, pages, seq)[0], oracle.logits(PROMPT)[-1], atol=1e-4)
    seq.tokens.append(TREE.tokens[0])
    out = runner.forward(Plan([Row(seq, 1, samples=True)]), [TREE])
    assert (out.starts, out.offsets, out.features) == ((0,), (0,), ())
    assert out.logits.shape == (len(TREE), 61)
    assert len(out.hidden) == len(TREE)
    for node in range(len(TREE)):
        alone = oracle.logits([*PROMPT, *path_tokens(TREE, node)])[-1]
        assert torch.allclose(out.logits[node], alone, atol=1e-4), f"node {node}"


def test_moved_entries_continue_as_if_they_had_been_on_the_line(runner: Runner, oracle: Oracle) -> None:
    pages = PageTable(12)
    seq = start(pages)
    prefill(runner, pages, seq)
    seq.tokens.append(TREE.tokens[0])
    runner.forward(Plan([Row(seq, 1, samples=True)]), [TREE])
    seq.tokens += [32, 35, 36, 40]
    moves = pages.commit(seq, (0, 2, 5, 6))
    assert len(moves) == 3
    runner.move(moves)
    pages.reserve(seq, 1)
    logits = runner.forward(Plan([Row(seq, 1, samples=True)]), [TokenTree.chain((40,))]).logits
    assert torch.allclose(logits[0], oracle.logits([*PROMPT, 30, 32, 35, 36, 40])[-1], atol=1e-4)


def test_no_moves_touch_nothing(runner: Runner, cache: TensorCache) -> None:
    before = cache.k.clone()
    runner.move([])
    assert torch.equal(cache.k, before)


def test_starts_skip_rows_that_sample_nothing_and_known_rows(runner: Runner, oracle: Oracle) -> None:
    """A tree, a chunk in the middle of a prompt, and the end of a prompt, side by side."""
    pages = PageTable(12)
    decoding, middle, ending = start(pages), start(pages, (5, 6, 7, 8)), start(pages, (9, 8, 7))
    prefill(runner, pages, decoding)
    decoding.tokens.append(30)
    rows = [Row(decoding, 1, samples=True), Row(middle, 2, samples=False), Row(ending, 3, samples=True)]
    out = runner.forward(Plan(rows), [TREE, TokenTree.chain((5, 6)), TokenTree.chain((9, 8, 7))])
    assert out.starts == (0, len(TREE), len(TREE))
    assert len(out.logits) == len(TREE) + 1
    assert torch.allclose(out.logits[0], oracle.logits([*PROMPT, 30])[-1], atol=1e-4)
    assert torch.allclose(out.logits[-1], oracle.logits([9, 8, 7])[-1], atol=1e-4)


def test_features_hold_every_row_from_its_offset_on(checkpoint: RandomCheckpoint, cache: TensorCache) -> None:
    """Those of the embeddings tell which token a row is."""
    ops, size = backend.load(), checkpoint.config.hidden_size
    unit = ops.pack(ArrayMatrix(np.eye(size, dtype=np.float32)))
    decoder = Decoder(checkpoint.config, checkpoint.load(), ops, context_length=128, features=[{0: unit}, {1: unit}])
    runner, pages = Runner(decoder, cache, ops), PageTable(12)
    decoding, middle, ending = start(pages), start(pages, (5, 6, 7, 8)), start(pages, (9, 8, 7))
    prefill(runner, pages, decoding)
    decoding.tokens.append(30)
    rows = [Row(middle, 2, samples=False), Row(decoding, 1, samples=True), Row(ending, 3, samples=True)]
    trees = [TokenTree.chain((5, 6)), TREE, TokenTree.chain((9, 8, 7))]
    out = runner.forward(Plan(rows), trees)
    assert out.offsets == (0, 2, 2 + len(TREE))
    assert len(out.features) == 2
    table = dense(checkpoint.load().embed)
    for offset, tree in zip(out.offsets, trees, strict=True):
        assert torch.equal(out.features[0][offset : offset + len(tree)], table[list(tree.tokens)])
    assert len(out.features[1]) == 2 + len(TREE) + 3


def test_a_step_without_samples_has_no_logits(runner: Runner) -> None:
    pages = PageTable(12)
    out = runner.forward(Plan([Row(start(pages), 4, samples=False)]), [TokenTree.chain(PROMPT[:4])])
    assert out.logits.shape == (0, 61)
    assert out.starts == (0,)


@pytest.mark.parametrize("rows", [1, 16, 17])
def test_a_measurement_is_a_positive_time(runner: Runner, rows: int) -> None:
    assert 0 < runner.measure(rows) < float("inf")


def test_a_measured_pass_is_waited_for(checkpoint: RandomCheckpoint, cache: TensorCache) -> None:
    """On a device a call is over long before: a time taken around it would be that of its launch. A step waits for its
    tokens alone.
    """
    events: list[str] = []
    ops = replace(backend.load(), wait=lambda: events.append("wait"))
    decoder = Decoder(checkpoint.config, checkpoint.load(), ops, context_length=128)
    launch = decoder.forward
    decoder.forward = lambda *given: (events.append("launch"), launch(*given))[1]
    runner = Runner(decoder, cache, ops)
    prefill(runner, PageTable(12), start(PageTable(12)))
    assert events == ["launch"]
    runner.measure(8)
    assert events[1:] == ["launch", "wait"]
