"""`sample`: choose the next token of each row by the Gumbel-max trick, with noise that depends on position alone.

    next = argmax over allowed v of  logits[v] / T + g(seed, position, v)

samples exactly from softmax(logits / T) (Gumbel 1954; Maddison et al., arXiv 1411.0030). The noise is random access:
g(seed, position, v) comes from Philox4x32-10 (Salmon et al., SC'11) with key = the 64-bit seed, counter =
(position, v // 4) and word v % 4; u = ((word >> 8) + 0.5) / 2^24 lies strictly between 0 and 1; g = -ln(-ln u), rounded
to float32. Temperature 0 is plain argmax. Ties go to the lower id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Logits = Any  # [M, V] of one backend, valid until its next pass; rows of it are taken by slicing


class Draw(NamedTuple):
    """How one row is sampled. Filters apply to softmax(logits / T): top-k, then top-p (nucleus), then min-p.

    top-k keeps the k most likely tokens; top-p of those the fewest whose probability, within the k kept, reaches p;
    min-p those with at least min_p times the probability of the likeliest. Ties are kept in order of id.
    """

    seed: int
    position: int  # of the token being chosen
    temperature: float
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


class Sample(Protocol):
    def __call__(self, logits: Logits | NDArray[np.float32], draws: Sequence[Draw]) -> list[int]:
        """Rows of a pass, or rows that `host` gave and that were rewritten, [R, V]; one draw per row -> R token ids."""
        ...


class Host(Protocol):
    def __call__(self, logits: Logits) -> NDArray[np.float32]:
        """The values of any rows, to read and not to write: a backend may return its own memory."""
        ...
