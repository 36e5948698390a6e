"""`rank`: the likeliest next tokens in order, under the noise that `sample` will draw with.

A drafter that ranks its guesses by  logits[v] / T + g(seed, position, v)  with the target's own noise agrees with the
target far more often than one that samples for itself (Gumbel coupling: Daliri, Musco, Suresh, arXiv 2408.07978).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..linear import Activation, Constant
from ..sample import Draw, Logits

Vocabulary = NDArray[np.int64]  # [Vt], the target's token id of each column


class Rank(Protocol):
    def __call__(
        self, logits: Logits | NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Logits [M, Vt] over a trimmed vocabulary, one draw per row -> (tokens [M, k], probabilities [M, k]).

        vocabulary: None where columns are the target's ids. Tokens are the target's ids, in descending order of
        logits / T + g, with the noise of `sample` for that id; at T = 0 of logits; ties go to the lower id.
        Probabilities are those of softmax(logits / T), at T = 0 of softmax(logits), over the trimmed vocabulary. Of a
        draw only seed, position and temperature count: top-k, top-p and min-p are ignored. 1 <= k <= Vt; ValueError
        where that is not so, or where a size does not fit.
        """
        ...


# One per row of a pass, as its backend wants them: a field of the batch it hands to the function it compiles.
Draws = Any


class RankRows(Protocol):
    def __call__(
        self, logits: Activation, vocabulary: Constant | None, draws: Draws, ahead: int, k: int
    ) -> tuple[Activation, Activation]:
        """`rank` inside a pass: logits [R n, Vt] -> (tokens [R, n k], probabilities [R, n k]), for each of R draws.

        n rows in turn belong to each draw; the first chooses the token `ahead` places after the draw's, the next one
        the token after that, and so on. vocabulary: int32. Where n is 1, a column of tokens are ids for `embed`.
        """
        ...
