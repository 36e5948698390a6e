from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import trees

from paceline.spec.accept import walk
from paceline.spec.tree import TokenTree

VOCAB = 3  # small: random guesses are often right
STOP = 2


def model(tokens: Sequence[int]) -> int:
    """The next token: depends on every token before it."""
    return zlib.crc32(bytes(tokens)) % VOCAB


def plain(tokens: Sequence[int], count: int) -> list[int]:
    """Decoded one by one."""
    line = list(tokens)
    for _ in range(count):
        line.append(model(line))
    return line[len(tokens) :]


class Walked:
    """A walk with the toy model, which reads the tokens of a node's line off the tree itself."""

    def __init__(self, tree: TokenTree, known: int, *, stop: int = -1, most: int = 1000) -> None:
        self.asked: list[int] = []

        def choose(node: int, tokens: tuple[int, ...]) -> int:
            self.asked.append(node)
            above = []
            while node >= 0:
                above.append(tree.tokens[node])
                node = tree.parents[node]
            assert above[::-1] == [*tree.tokens[:known], *tokens]
            return model(above[::-1])

        self.path, self.tokens = walk(tree, known, choose, lambda token, count: token == stop or count == most)


@settings(max_examples=300)
@given(st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=4), trees(VOCAB, 24), st.integers(1, 6))
def test_any_tree_gives_the_text_of_plain_decoding(known: list[int], guesses: TokenTree, most: int) -> None:
    """The guesses of a random tree hung below the line of known tokens: nothing but its length depends on them."""
    tree = TokenTree(
        (*known, *guesses.tokens[1:]),
        (*range(-1, len(known) - 1), *(parent + len(known) - 1 for parent in guesses.parents[1:])),
    )
    walked = Walked(tree, len(known), stop=STOP, most=most)
    path, tokens = walked.path, walked.tokens

    assert tokens == tuple(plain(known, len(tokens)))
    assert len(tokens) == len(path) - len(known) + 1
    assert path[: len(known)] == tuple(range(len(known)))
    assert [tree.tokens[node] for node in path[len(known) :]] == list(tokens[:-1])
    assert all(tree.parents[child] == node for node, child in pairwise(path))
    assert walked.asked == list(path[len(known) - 1 :]), "each node of the line is asked once, and no other"
    assert STOP not in tokens[:-1]
    ended = tokens[-1] == STOP or len(tokens) == most
    assert ended or tokens[-1] not in tree.children[path[-1]], "the walk stopped early"


@pytest.mark.parametrize("known", [1, 5])
def test_right_guesses_are_all_accepted(known: int) -> None:
    prompt = [1] * known
    right = plain(prompt, 8)
    walked = Walked(TokenTree.chain((*prompt, *right[:7])), known)
    assert walked.path == tuple(range(known + 7))
    assert walked.tokens == tuple(right)


def test_wrong_guesses_cost_nothing_but_themselves() -> None:
    wrong = [token for token in range(VOCAB) if token != model([1, 1])]
    walked = Walked(TokenTree((1, 1, *wrong), (-1, 0, 1, 1)), 2)
    assert walked.path == (0, 1)
    assert walked.tokens == (model([1, 1]),)


def test_last_token_inside_an_accepted_run_ends_it() -> None:
    """Node 2 carries the last token, and nothing after it is accepted or even asked for; it is the bonus token."""
    asked = []

    def choose(node: int, tokens: tuple[int, ...]) -> int:
        asked.append(node)
        return node + 11

    tree = TokenTree.chain((10, 11, 12, 13, 14))
    assert walk(tree, 1, choose, lambda token, count: token == 12) == ((0, 1), (11, 12))
    assert walk(tree, 1, choose, lambda token, count: count == 3) == ((0, 1, 2), (11, 12, 13))
    assert walk(tree, 1, choose, lambda token, count: True) == ((0,), (11,))
    assert asked == [0, 1, 0, 1, 2, 0]


def test_of_two_children_with_the_same_token_the_first_is_taken() -> None:
    tree = TokenTree((0, 5, 5, 6), (-1, 0, 0, 2))
    assert walk(tree, 1, lambda node, tokens: 5 + len(tokens), lambda token, count: False) == ((0, 1), (5, 6))


def test_where_no_token_can_be_chosen_the_walk_ends_with_what_came_before() -> None:
    tree = TokenTree.chain((4, 11, 12, 13))
    chosen = {0: 11, 1: 12, 2: None}
    assert walk(tree, 1, lambda node, tokens: chosen[node], lambda token, count: False) == ((0, 1, 2), (11, 12))
    assert walk(tree, 2, lambda node, tokens: None, lambda token, count: False) == ((0, 1), ())
