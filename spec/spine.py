"""Several levels of guesses in one pass: the best guess of a level is the token that the next level goes on from.

Between two levels a device would wait for the host to choose, tens of microseconds each time, longer than most levels
take there. Where passes can go on from their own guesses (`Ops.guessing`), the first look into a sequence brings what
looking into the best guess again and again would, in one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Guessing, Ops
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation, Indices
from paceline.kernels.rank import Vocabulary

from .draft_batch import fed
from .guess_tree import Floats, GuessTree
from .tree_drafter import SIBLINGS, draw_after, largest_first

MOST_LEVELS = 4  # the best guess four levels down is right too seldom to be paid for whoever asks

# (level, ids [S], state [S, W]) -> (logits [S, N], the next level's state, what of it the host is to have [S, P])
Step = Callable[[int, Indices, Activation], tuple[Activation, Activation, Activation]]
# (what the pass above it passed on [W], what came of this one [P]) -> what this one passes on
Passed = Callable[[Floats, Floats], Floats]


def read(values: Floats, levels: int, width: int = 0) -> tuple[NDArray[np.int64], Floats, Floats]:
    """What a pass joined of S rows, all levels' k tokens, all their probabilities, and `width` values of each level:
    (tokens [S, levels, k], estimates [S, levels, k], values [S, levels, width]); a level's largest estimate is its
    first token's.
    """
    rows, guesses = len(values), (values.shape[1] // levels - width) // 2 * levels
    tokens, probabilities, rest = (
        part.reshape(rows, levels, -1) for part in np.split(values, (guesses, 2 * guesses), axis=1)
    )
    return tokens.astype(np.int64), largest_first(probabilities), rest


class Spine:
    """step: one level, as a pass computes it. vocabulary: the target's id of each of the N columns; None where columns
    are ids. width: P.
    """

    def __init__(
        self,
        ops: Ops,
        guessing: Guessing,
        step: Step,
        *,
        vocabulary: Vocabulary | None,
        levels: int,
        width: int,
        passed: Passed = lambda above, made: made,
    ) -> None:
        self.levels = min(levels, MOST_LEVELS)
        self._ops = ops
        self._guessing = guessing
        self._step = step
        self._passed = passed
        self._width = width
        self._vocabulary = None if vocabulary is None else ops.constant(vocabulary.astype(np.int32))
        self._forward = ops.compile(self._pass)

    def _pass(self, batch: Any, cache: Cache) -> tuple[Activation]:
        ids, state = batch.ids, self._ops.feed(batch.features)
        guesses, chances, kept = [], [], []
        for level in range(self.levels):
            logits, state, made = self._step(level, ids, state)
            k = min(SIBLINGS, logits.shape[1])
            tokens, probabilities = self._guessing.rank(logits, self._vocabulary, batch.draws, level, k)
            ids = tokens[:, 0]
            guesses.append(tokens)
            chances.append(probabilities)
            kept.append(made)
        return (self._guessing.join([*guesses, *chances, *kept]),)

    def grow(self, trees: Sequence[GuessTree], states: Floats, ids: Sequence[int]) -> None:
        """Look into pending tokens, and into the best guess below each, level by level. states: [S, W]."""
        batch = fed(states, ids, [draw_after(tree, 0) for tree in trees])
        joined = self._ops.host(self._forward(batch, None)[0])
        tokens, estimates, made = read(joined.copy(), self.levels, self._width)  # the next call writes where this did
        for i, tree in enumerate(trees):
            passed = list(accumulate(made[i], self._passed, initial=states[i]))[1:]
            tree.descend(passed, tokens[i], estimates[i])
