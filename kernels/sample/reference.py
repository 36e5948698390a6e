"""Plain numpy implementation of `sample`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import Draw

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)

# u is at most 1 - 2^-25, so no noise exceeds -ln(-ln(1 - 2^-25)) = 17.33: a token further than that below another one
# cannot win.
_NOISE_CEILING = 17.4

# A lower temperature would overflow float32; at this one no noise changes the choice any more.
COLDEST = 1e-20


def philox(counters: NDArray[np.uint64], position: int, seed: int) -> NDArray[np.uint64]:
    """Philox4x32-10 words for counters (position, c): [C] -> [C, 4], each word in the low 32 bits."""
    x0 = np.full_like(counters, position & 0xFFFFFFFF)
    x1 = np.full_like(counters, position >> 32)
    x2 = counters & _LOW
    x3 = counters >> _SHIFT
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = x0 * _MULTIPLIERS[0], x2 * _MULTIPLIERS[1]
        x0, x1, x2, x3 = (
            (p1 >> _SHIFT) ^ x1 ^ np.uint64(k0),
            p1 & _LOW,
            (p0 >> _SHIFT) ^ x3 ^ np.uint64(k1),
            p0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack((x0, x1, x2, x3), axis=-1)


def gumbel(tokens: NDArray[np.int64], position: int, seed: int) -> NDArray[np.float32]:
    """Noise of the given token ids, [C] -> [C] float32; ids may come in any order and any selection."""
    counters, inverse = np.unique(tokens >> 2, return_inverse=True)
    words = philox(counters.astype(np.uint64), position, seed)[inverse, tokens & 3]
    u = ((words >> np.uint64(8)).astype(np.float64) + 0.5) / 2.0**24
    # Logarithms in float64: a float32 one may round differently in a vector register than in the loop's tail, and then
    # a token's noise would depend on its neighbours.
    noise: NDArray[np.float32] = (-np.log(-np.log(u))).astype(np.float32)
    return noise


def divided(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    """logits / T for a T above 0."""
    return logits / np.float32(max(temperature, COLDEST))


def _nucleus(scaled: NDArray[np.float32], draw: Draw) -> NDArray[np.int64]:
    """Ids that survive top-k, top-p and min-p, in ascending order."""
    ids = np.arange(scaled.size)
    if 0 < draw.top_k < ids.size:
        floor = np.partition(scaled, -draw.top_k)[-draw.top_k]
        above, ties = np.flatnonzero(scaled > floor), np.flatnonzero(scaled == floor)
        ids = np.sort(np.concatenate((above, ties[: draw.top_k - above.size])))
    if draw.top_p < 1.0:
        kept = scaled[ids]
        weights = np.exp((kept - kept.max()).astype(np.float64))
        goal = draw.top_p * weights.sum()
        # Sorting everything is the cost here; the likely few almost always hold the mass already.
        few = np.flatnonzero(weights > 1e-4)
        if weights[few].sum() < goal:
            few = np.arange(ids.size)
        order = few[np.argsort(-weights[few], kind="stable")]
        last = int(np.searchsorted(np.cumsum(weights[order]), goal))
        ids = np.sort(ids[order[: last + 1]])
    if draw.min_p > 0.0:
        kept = scaled[ids]
        ids = ids[kept >= kept.max() + np.log(draw.min_p)]
    return ids


def _sample_row(logits: NDArray[np.float32], draw: Draw) -> int:
    if draw.temperature == 0.0:
        return int(logits.argmax())
    scaled = divided(logits, draw.temperature)
    best = np.array([scaled.argmax()])
    lead = scaled[best[0]] + gumbel(best, draw.position, draw.seed)[0]
    ids = _nucleus(scaled, draw)
    ids = ids[scaled[ids] >= lead - _NOISE_CEILING]
    return int(ids[np.argmax(scaled[ids] + gumbel(ids, draw.position, draw.seed))])


def sample(logits: NDArray[np.float32], draws: Sequence[Draw]) -> list[int]:
    return [_sample_row(row, draw) for row, draw in zip(logits, draws, strict=True)]
