"""The arrays of a step against what the definitions of slot, position and ancestor say, node by node."""

from __future__ import annotations

import random

import numpy as np
import pytest
from fakes import make_request

from paceline.engine.batch import build_batch
from paceline.engine.scheduler import Plan, Row
from paceline.engine.sequence import Sequence
from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.tree import MAX_NODES, TokenTree


def row(computed: int, known: int, blocks: list[int], *, samples: bool = True) -> Row:
    seq = Sequence(make_request("r", range(1, computed + known + 1)), arrival=0)
    seq.num_computed = computed
    seq.blocks = blocks
    return Row(seq, known, samples)


def build(*pairs: tuple[Row, TokenTree]) -> Batch:
    return build_batch(Plan([row for row, _ in pairs]), [tree for _, tree in pairs])


def line(tree: TokenTree, node: int) -> list[int]:
    """The node and its ancestors, by following parents."""
    nodes = []
    while node >= 0:
        nodes.append(node)
        node = tree.parents[node]
    return nodes


def random_tree(pick: random.Random, nodes: int) -> TokenTree:
    parents = [-1, *(pick.randrange(node) for node in range(1, nodes))]
    return TokenTree(tuple(pick.randrange(100) for _ in parents), tuple(parents))


def test_a_prefill_chunk_and_a_tree_side_by_side() -> None:
    tree = TokenTree((50, 51, 52, 53), (-1, 0, 0, 2))
    batch = build((row(17, 1, [3, 9]), tree), (row(15, 3, [4, 1]), TokenTree.chain((60, 61, 62))))
    assert batch.ids.tolist() == [50, 51, 52, 53, 60, 61, 62]
    assert batch.positions.tolist() == [17, 18, 18, 19, 15, 16, 17]
    assert batch.slots.tolist() == [145, 146, 147, 148, 79, 16, 17]
    assert batch.sampled.tolist() == [0, 1, 2, 3, 6]
    layout = batch.layout
    assert layout.row_starts.tolist() == [0, 4, 7]
    assert layout.context_lens.tolist() == [17, 15]
    assert layout.block_tables.tolist() == [[3, 9], [4, 1]]
    assert layout.causal.tolist() == [False, True]
    assert layout.ancestors.tolist() == [0b0001, 0b0011, 0b0101, 0b1101, 0, 0, 0]


def test_dtypes_are_those_of_the_contract() -> None:
    batch = build((row(0, 1, [0]), TokenTree.chain((1,))))
    assert {rows.dtype for rows in (batch.ids, batch.positions, batch.slots, batch.sampled)} == {np.dtype(np.int64)}
    layout = batch.layout
    assert {layout.row_starts.dtype, layout.context_lens.dtype, layout.block_tables.dtype} == {np.dtype(np.int32)}
    assert (layout.causal.dtype, layout.ancestors.dtype) == (np.bool_, np.int64)


def test_a_chunk_that_ends_no_prompt_samples_nothing() -> None:
    batch = build((row(0, 5, [0], samples=False), TokenTree.chain((1, 2, 3, 4, 5))))
    assert batch.sampled.tolist() == []


def test_tables_of_different_length_are_padded() -> None:
    batch = build((row(0, 1, [5]), TokenTree.chain((1,))), (row(40, 1, [2, 3, 4]), TokenTree.chain((1,))))
    assert batch.layout.block_tables.tolist() == [[5, 0, 0], [2, 3, 4]]


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_against_the_definition(seed: int) -> None:
    pick = random.Random(seed)
    pairs = []
    blocks = list(range(60))
    pick.shuffle(blocks)
    for _ in range(4):
        tree = random_tree(pick, pick.choice((1, 2, 9, 40, MAX_NODES)))
        computed = pick.randint(0, 40)
        count = -(-(computed + len(tree)) // BLOCK_SIZE)
        pairs.append((row(computed, 1, [blocks.pop() for _ in range(count)]), tree))
    batch = build(*pairs)
    at = 0
    for row_, tree in pairs:
        seq = row_.seq
        for node in range(len(tree)):
            ancestors = line(tree, node)
            slot = seq.num_computed + node
            assert batch.ids[at] == tree.tokens[node]
            assert batch.positions[at] == seq.num_computed + len(ancestors) - 1
            assert batch.slots[at] == seq.blocks[slot // BLOCK_SIZE] * BLOCK_SIZE + slot % BLOCK_SIZE
            if not tree.is_chain:
                word = int(batch.layout.ancestors[at]) % 2**64
                assert [bit for bit in range(64) if word >> bit & 1] == sorted(ancestors)
            at += 1
    assert at == len(batch.ids) == batch.layout.row_starts[-1]
    assert batch.sampled.tolist() == list(range(at))


def test_the_sixty_fourth_node_sets_the_sign_bit() -> None:
    tree = TokenTree(tuple(range(MAX_NODES)), (-1, *([0] * (MAX_NODES - 1))))
    word = int(build((row(0, 1, [0, 1, 2, 3]), tree)).layout.ancestors[-1])
    assert word == 1 - 2**63
    assert [bit for bit in range(MAX_NODES) if word >> bit & 1] == [0, 63]


def test_a_chain_may_be_longer_than_a_word() -> None:
    length = 100
    batch = build((row(0, length, list(range(7))), TokenTree.chain(tuple(range(length)))))
    assert batch.positions.tolist() == list(range(length))
    assert batch.layout.causal.tolist() == [True]
    assert batch.sampled.tolist() == [length - 1]
