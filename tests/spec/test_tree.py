from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import trees

from paceline.spec.tree import MAX_NODES, TokenTree


def line(tree: TokenTree, node: int) -> list[int]:
    """The node and its ancestors, by climbing."""
    climbed = [node]
    while tree.parents[climbed[-1]] >= 0:
        climbed.append(tree.parents[climbed[-1]])
    return climbed


@given(trees(vocab=3, most=MAX_NODES))
def test_derived_views_equal_climbing_to_the_root(tree: TokenTree) -> None:
    for node in range(len(tree)):
        climbed = line(tree, node)
        assert tree.depths[node] == len(climbed) - 1
        assert tree.ancestors[node] == sum(1 << ancestor for ancestor in climbed)
        below = [child for child in range(1, len(tree)) if tree.parents[child] == node]
        assert tree.children[node] == {tree.tokens[child]: child for child in reversed(below)}  # the first one wins
    assert tree.is_chain == (max(tree.depths) == len(tree) - 1)


def test_words_use_the_whole_64_bits() -> None:
    full = TokenTree.chain(tuple(range(MAX_NODES)))
    assert full.ancestors[-1] == 2**64 - 1
    star = TokenTree((0,) * MAX_NODES, (-1, *[0] * (MAX_NODES - 1)))
    assert star.ancestors[-1] == 2**63 + 1


def test_chain_may_be_longer_than_a_word_and_a_branching_tree_may_not() -> None:
    long = TokenTree.chain(tuple(range(1000)))
    assert long.is_chain
    assert long.depths == tuple(range(1000))
    branching = (-1, 0, 0, *range(2, MAX_NODES))
    with pytest.raises(ValueError, match="at most 64 nodes, got 65"):
        TokenTree((0,) * 65, branching)
    assert len(TokenTree((0,) * 64, branching[:64])) == 64


@pytest.mark.parametrize(
    ("tokens", "parents"),
    [
        ((), ()),
        ((1,), ()),
        ((1, 2), (-1,)),
        ((1,), (0,)),
        ((1, 2), (-1, 1)),
        ((1, 2), (-1, -1)),
        ((1, 2, 3), (-1, 2, 0)),
        ((1, 2, 3), (-1, 0, -2)),
    ],
    ids=["empty", "no parents", "too few parents", "root below itself", "own parent", "two roots", "late", "negative"],
)
def test_invalid_trees_are_refused(tokens: tuple[int, ...], parents: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"parent"):
        TokenTree(tokens, parents)


def test_chain_needs_a_token() -> None:
    with pytest.raises(ValueError, match="root"):
        TokenTree.chain(())


@given(st.lists(st.integers(0, 9), min_size=1, max_size=100))
def test_chain_is_a_chain(tokens: list[int]) -> None:
    tree = TokenTree.chain(tuple(tokens))
    assert tree.is_chain
    assert tree.tokens == tuple(tokens)
    assert tree.parents == tuple(range(-1, len(tokens) - 1))
