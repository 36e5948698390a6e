"""Growing trees best first, pass by pass: the same for every drafter whose guesses depend on the guesses above them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.rank import Vocabulary
from paceline.kernels.sample import Draw, Logits

from .guess_tree import Floats, GuessTree
from .proposer import Ask, Proposal, Verdict

_RIGHT = 0.6  # how often one of a node's children is right, about; whether a pass pays depends little on it
_SMOOTH = 0.1  # weight of a new measurement
_FASTER = 0.2  # of one that is shorter than those before
_FORGOTTEN = 0.999  # per pass that was not worth its time
# Times its own time that a pass must promise: its guesses cost rows as well, and a token beside others is cheap.
# 5 gave 1.17 times plain speed on Spec-Bench prompts, 2 gave 1.14.
_MARGIN = 5.0
SIBLINGS = 4  # guesses kept below a node
_UNMEASURED = 0.5  # of a plain step, that a call is taken to last before one was measured: hardly any lasts longer


def smoothed(before: float | None, ms: float) -> float:
    """A measured time after those before. The first may hold what is done once, and whoever looks slow is measured
    seldom: so a shorter time counts for more, and a longer one as twice the last at most.
    """
    if before is None:
        return ms
    return before + (_FASTER if ms < before else _SMOOTH) * (min(ms, 2 * before) - before)


class DraftTime:
    """Milliseconds of `propose`, by how many sequences ask at once."""

    def __init__(self) -> None:
        self._ms: dict[int, float] = {}

    def expected(self, asks: int) -> float:
        """0 before anything was measured."""
        if not self._ms:
            return 0.0
        return self._ms[min(self._ms, key=lambda count: abs(count - asks))]

    def observe(self, asks: int, ms: float) -> None:
        self._ms[asks] = smoothed(self._ms.get(asks), ms)


class TreeDrafter(ABC):
    """Looks into the pending tokens, then again and again into the likeliest guesses of all sequences in one pass, as
    long as another pass promises more than it takes.

    token_ms: what a token costs without this drafter, in milliseconds.
    """

    name: str
    needs_hidden: bool
    beam: ClassVar[int] = 2  # nodes of a sequence that are looked into per pass
    deepest: int = 6  # levels of guesses

    def __init__(self, token_ms: Callable[[], float]) -> None:
        self._token_ms = token_ms
        self._time = DraftTime()
        self._pass_ms: float | None = None

    @abstractmethod
    def _start(self, asks: Sequence[Ask]) -> dict[int, GuessTree]:
        """Look into the pending token of every sequence that can be drafted for; their trees by the ask's index."""

    @abstractmethod
    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        """Look into these guesses, with as few passes as can be."""

    @abstractmethod
    def observe(self, verdicts: Sequence[Verdict]) -> None: ...

    @abstractmethod
    def forget(self, seq_id: str) -> None: ...

    def restart(self) -> None:
        """Implements `Timed`."""
        self._time = DraftTime()
        self._pass_ms = None

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return self._time.expected(len(asks)) or _UNMEASURED * self._token_ms()

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        begin = time.perf_counter()
        trees = self._start(asks)
        for _ in range(1, self.deepest):
            if not self._grow(list(trees.values())):
                break
        proposals = [Proposal(self.name)] * len(asks)
        for i, tree in trees.items():
            proposals[i] = tree.proposal(self.name)
        if trees:
            self._time.observe(len(trees), (time.perf_counter() - begin) * 1e3)
        return proposals

    def _grow(self, trees: Sequence[GuessTree]) -> bool:
        """Look into the likeliest guesses of all sequences with one pass; False where that would not pay."""
        chosen: list[tuple[GuessTree, list[int]]] = []
        likely = 0.0
        for tree in trees:
            if best := tree.best(self._room(tree), self.deepest):
                chosen.append((tree, best))
                likely += sum([tree.likely[node] for node in best])
        promise = _RIGHT * likely
        pass_ms = self._pass_ms or 0.0
        if not chosen or promise * self._token_ms() <= _MARGIN * pass_ms:
            self._pass_ms = _FORGOTTEN * pass_ms  # what is never tried is never measured
            return False
        start = time.perf_counter()
        self._look(chosen)
        self._pass_ms = smoothed(self._pass_ms or None, (time.perf_counter() - start) * 1e3)
        return True

    def _room(self, tree: GuessTree) -> int:
        """Nodes of this tree that the next pass may look into."""
        return self.beam


def rank_coupled(
    ops: Ops, logits: Logits, vocabulary: Vocabulary | None, draws: Sequence[Draw], most: int
) -> tuple[NDArray[np.int64], Floats]:
    """Logits [M, N] -> (tokens, estimates) [M, k], best first under the noise the target will draw, with k = `most` or
    N where that is less.

    What stands first is right far more often than its probability alone says: the largest estimate goes to it.
    """
    tokens, probabilities = ops.rank(logits, vocabulary, draws, min(most, logits.shape[1]))
    return tokens, largest_first(probabilities)


def largest_first(probabilities: Floats) -> Floats:
    """Of guesses along the last axis, the best first."""
    return np.sort(probabilities, axis=-1)[..., ::-1]


def draw_after(tree: GuessTree, node: int, ahead: int = 0) -> Draw:
    """How the target will choose the token that follows the node, or one that many places after it."""
    return Draw(tree.ask.seed, tree.position(node) + 1 + ahead, tree.ask.temperature)


def ranked(
    ops: Ops, logits: Logits, vocabulary: Vocabulary | None, nodes: Sequence[tuple[GuessTree, int]]
) -> tuple[NDArray[np.int64], Floats]:
    """`rank_coupled` for what follows each node, one row per node."""
    return rank_coupled(ops, logits, vocabulary, [draw_after(tree, node) for tree, node in nodes], SIBLINGS)
