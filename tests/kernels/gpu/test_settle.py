from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_caches import by_slot, filled
from trees import trees

from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.move_kv.triton_impl import move_slots
from paceline.kernels.sample import Draw, reference
from paceline.kernels.settle.triton_impl import settle
from paceline.spec.accept import walk
from paceline.spec.tree import TokenTree

VOCAB = 3  # walks go on


class Moves:
    """Stands in for the kernel that moves entries."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.moves: list[tuple[int, int]] = []

    def __call__(self, cache: Any, source: torch.Tensor, target: torch.Tensor) -> None:
        assert cache == "the cache"
        assert source.shape == target.shape
        assert ((source < 0) == (target < 0)).all()
        self.shapes.append(tuple(source.shape))
        places = zip(source.flatten().tolist(), target.flatten().tolist(), strict=True)
        self.moves += [(origin, place) for origin, place in places if origin >= 0]


def batch_of(batched: list[tuple[TokenTree, int]]) -> Batch:
    """Trees, each with how many of its first nodes are known already; 0 where no row of it is sampled. Slots lie
    apart and in no order, and so tell whose they are.
    """
    ids, positions, sampled, starts, ancestors = [], [], [], [0], []
    for tree, known in batched:
        first = len(ids)
        ids += tree.tokens
        positions += [100 + depth for depth in tree.depths]
        sampled += range(first + known - 1, first + len(tree)) if known else []
        ancestors += [0] * len(tree) if tree.is_chain else tree.ancestors
        starts.append(len(ids))
    return Batch.of(
        ids=ids,
        positions=positions,
        slots=[(row * 577) % 4099 for row in range(len(ids))],
        sampled=sampled,
        starts=starts,
        contexts=[100] * len(batched),
        tables=[[0]] * len(batched),
        causal=[tree.is_chain for tree, _ in batched],
        ancestors=ancestors,
    )


def moves_on_the_host(batched: list[tuple[TokenTree, int]], batch: Batch, tokens: list[int]) -> list[tuple[int, int]]:
    row_of = dict(zip(batch.sampled.tolist(), tokens, strict=True))
    moves = []
    for (tree, known), first in zip(batched, batch.layout.row_starts.tolist(), strict=False):
        if known:
            path, _ = walk(tree, known, lambda node, _, first=first: row_of[first + node], lambda *_: False)
            slots = batch.slots[first:].tolist()
            moves += [(slots[node], slots[step]) for step, node in enumerate(path) if node != step]
    return moves


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[TokenTree, int]]:
    """Trees, chains among them, of which some only fill the cache and some start with known nodes."""
    batched = []
    for tree in draw(st.lists(trees(VOCAB, most=20), min_size=1, max_size=3)):
        line = 1
        while line < len(tree) and tree.parents[line] == line - 1:
            line += 1
        batched.append((tree, draw(st.integers(0, line))))
    return batched


@settings(max_examples=15)
@given(batched=batches(), seed=st.integers(0, 99), temperature=st.sampled_from([0.0, 1.0]))
def test_walks_and_moves_as_the_host_would(batched: list[tuple[TokenTree, int]], seed: int, temperature: float) -> None:
    batch, move = batch_of(batched), Moves()
    logits = np.random.default_rng(seed).standard_normal((len(batch.sampled), VOCAB), np.float32)
    draws = [Draw(seed, int(batch.positions[row]) + 1, temperature) for row in batch.sampled]
    settled = settle(torch.from_numpy(logits), draws, batch, "the cache", move=move).result()
    want = reference.sample(logits, draws)
    assert settled.tokens == want
    assert settled.moved
    assert sorted(move.moves) == sorted(moves_on_the_host(batched, batch, want))


def certain(tokens: list[int]) -> torch.Tensor:
    """Logits of rows that choose these tokens."""
    return torch.eye(VOCAB)[tokens]


TREE = TokenTree((0, 1, 2, 1, 2), (-1, 0, 0, 2, 3))  # 0 -> 1 | 0 -> 2 -> 1 -> 2
GREEDY = Draw(0, 0, 0.0)


def test_the_slots_are_those_of_the_path_and_of_the_line() -> None:
    """Among two sequences, behind a node that is known; the first of two children with one token counts."""
    behind = TokenTree((2, 0, 1, 1, 2), (-1, 0, 1, 1, 3))
    batch, move = batch_of([(TREE, 1), (behind, 2)]), Moves()
    tokens = [2, 0, 1, 2, 0, 1, 0, 2, 2]  # of 0 the path 0, 2, 3, 4; of the other 1, 2 and no further
    settled = settle(certain(tokens), [GREEDY] * 9, batch, "the cache", move=move).result()
    slots = batch.slots.tolist()
    assert move.moves == [(slots[2], slots[1]), (slots[3], slots[2]), (slots[4], slots[3])]
    assert move.shapes == [(2, 16)]
    assert settled.tokens == tokens


def test_a_path_of_all_nodes_a_tree_may_have() -> None:
    """Its two first children are alike, and a walk down the second is not taken."""
    tree = TokenTree((0,) * 64, (-1, 0, 0, *range(2, 63)))
    batch, move = batch_of([(tree, 1)]), Moves()
    settle(certain([0] * 64), [GREEDY] * 64, batch, "the cache", move=move).result()
    assert (move.shapes, move.moves) == ([(1, 64)], [])
    deep = TokenTree((0, 1, *[0] * 62), tree.parents)
    settle(certain([0] * 64), [GREEDY] * 64, batch_of([(deep, 1)]), "the cache", move=move).result()
    slots = batch.slots.tolist()
    assert move.moves == list(zip(slots[2:], slots[1:], strict=False))


def test_entries_of_the_cache_are_moved() -> None:
    shape = CacheShape(layers=2, kv_heads=1, head_dim=16)
    cache = filled(shape, blocks=257, rng=torch.Generator().manual_seed(1))
    before = [by_slot(side).clone() for side in (cache.k, cache.v)]
    batch = batch_of([(TREE, 1)])
    settle(certain([2, 0, 1, 2, 0]), [GREEDY] * 5, batch, cache, move=move_slots).result()
    slots = batch.slots.tolist()
    for side, old in zip((cache.k, cache.v), before, strict=True):
        old[:, slots[1:4]] = old[:, slots[2:5]]
        assert torch.equal(by_slot(side), old)


@pytest.mark.parametrize(
    ("batched", "draws", "moved"),
    [
        ([(TREE, 1)], [GREEDY, None, GREEDY, GREEDY, GREEDY], False),
        ([(TREE, 1)], [None] * 5, False),
        ([(TokenTree.chain((0, 1, 2)), 1)], [GREEDY] * 3, True),
        ([(TREE, 0), (TokenTree.chain((0, 1)), 2)], [GREEDY], True),
        ([(TokenTree.chain((0, 1, 2)), 0)], [], True),
    ],
    ids=["rows left to the caller", "all rows left", "chain", "tree without sampled rows", "nothing sampled"],
)
def test_nothing_is_walked(batched: list[tuple[TokenTree, int]], draws: list[Draw | None], moved: bool) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    tokens = [row % VOCAB for row in range(len(draws))]
    settled = settle(certain(tokens), draws, batch_of(batched), None, move=never).result()
    assert settled.tokens == [None if draw is None else token for token, draw in zip(tokens, draws, strict=True)]
    assert settled.moved == moved
