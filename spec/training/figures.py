"""What the quality of a drafter is in numbers: from the ranks it gave to the tokens that came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

MISSED = 10**6  # rank of a token that cannot be guessed
_RANKS = 4  # reported
_WIDTH = 6  # ranks that a tree may hold
NODES = (4, 8, 16)


@dataclass(frozen=True, slots=True)
class Figures:
    """by_depth_and_rank[d][r]: how often the guess of rank r at depth d was the token that came, all before it known
    right. chain: expected tokens per step when each depth has its best guess alone, as deep as was measured.
    trees[n]: the same with the best static tree of n nodes, the pending token included; chosen on what it is measured
    on, so a little high. places: how many places of texts were looked at.
    """

    by_depth_and_rank: tuple[tuple[float, ...], ...]
    chain: float
    trees: dict[int, float]
    places: int

    def record(self) -> dict[str, object]:
        return asdict(self)

    def line(self) -> str:
        """In short, for a progress bar."""
        return f"{self.trees[NODES[1]]:.2f} tokens per step"


def figures_of(ranks: NDArray[np.int64], nodes: Sequence[int] = NODES) -> Figures:
    """ranks: [places, depth], of the token that came among the guesses of each depth; 0 is the best guess.

    A token is always won, the one the model chooses itself, so that 1 is what a drafter that is never right gives.
    """
    places, depth = ranks.shape
    if not places:
        return Figures(((0.0,) * _RANKS,) * depth, 1.0, dict.fromkeys(nodes, 1.0), 0)
    paths: Counter[tuple[int, ...]] = Counter()
    for row in ranks.tolist():
        for end in range(1, depth + 1):
            if row[end - 1] >= _WIDTH:
                break
            paths[tuple(row[:end])] += 1
    # A path comes at least as often as what it leads to, so that the best n are a tree.
    shares = [count / places for _, count in paths.most_common(max(nodes))]
    right = np.logical_and.accumulate(ranks == 0, axis=1)
    return Figures(
        tuple(tuple(float((ranks[:, d] == r).mean()) for r in range(_RANKS)) for d in range(depth)),
        float(1 + right.mean(axis=0).sum()),
        {n: 1 + sum(shares[: n - 1]) for n in nodes},
        places,
    )
