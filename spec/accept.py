"""The walk: sample at the root; if a child carries that token, step to it and repeat; else stop.

The text is what plain decoding would have produced, for any drafter and any tree, because every token comes from the
model's own logits and from noise that depends on the position alone (drafter-invariant speculative decoding: Daliri,
Musco, Suresh, arXiv 2408.07978). No acceptance ratios, no residual distribution, no draft probabilities.
"""

from __future__ import annotations

from collections.abc import Callable

from .tree import TokenTree


def walk(
    tree: TokenTree,
    known: int,
    choose: Callable[[int, tuple[int, ...]], int | None],
    is_last: Callable[[int, int], bool],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Walk a tree whose first `known` nodes, at least the root, form the line of tokens the sequence has already.

    choose(node, tokens): the token after `node`, given the new tokens chosen before it on the way; None ends the walk.
    is_last(token, count): whether the reply ends with this token, the count-th of this walk.
    Returns (path, tokens): accepted nodes, root first, the known ones included; and the tokens they led to, of which
    the last is the bonus token: no node carries it. len(tokens) == len(path) - known + 1, or one less where no token
    could be chosen.
    """
    path = list(range(known))
    tokens: list[int] = []
    while True:
        node = path[-1]
        token = choose(node, tuple(tokens))
        if token is None:
            return tuple(path), tuple(tokens)
        tokens.append(token)
        child = tree.children[node].get(token)
        if child is None or is_last(token, len(tokens)):
            return tuple(path), tuple(tokens)
        path.append(child)
