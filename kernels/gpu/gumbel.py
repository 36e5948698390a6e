"""The noise of `sample` on the device, and the winner of a tile under it."""

from __future__ import annotations

import triton
import triton.language as tl

# Of the noise in float32 against the noise itself: its error is below 2e-5. Twice that decides whether a token can win.
_SLACK = tl.constexpr(2e-4)
_RELATIVE_SLACK = tl.constexpr(1e-6)  # of the sums, which are rounded to float32

NO_ID = tl.constexpr(0x7FFFFFFF)


@triton.jit
def words(seed, position, group, lane):
    """Philox word of token 4 * group + lane; seed, position: int64 read as 64 bits; group and lane may broadcast.

    A tile whose tokens of one group stand in one thread computes the four words of a group once.
    """
    low = (position & 0xFFFFFFFF).to(tl.uint32)
    high = ((position >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = tl.full((), 0, tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, low, high, group.to(tl.uint32), zero)
    return tl.where(lane == 0, w0, tl.where(lane == 1, w1, tl.where(lane == 2, w2, w3)))


@triton.jit
def gumbel(word):
    """g = -ln(-ln u) in float64, rounded to float32."""
    u = ((word >> 8).to(tl.float64) + 0.5) * (1.0 / 16777216.0)
    return (-tl.log(-tl.log(u))).to(tl.float32)


@triton.jit
def near_gumbel(word):
    """g up to 2e-5, in float32: logarithms in float64 are slow, on consumer GPUs 64 times as slow."""
    top = word >> 8
    u = (top.to(tl.float32) + 0.5) * (1.0 / 16777216.0)
    # Near 1 the logarithm of a rounded u says nothing; 1 - u is exact enough there, and so is the series.
    rest = ((0xFFFFFF - top).to(tl.float32) + 0.5) * (1.0 / 16777216.0)
    series = rest * (1.0 + rest * (0.5 + rest * (1.0 / 3.0 + rest * 0.25)))
    return -tl.log(tl.where(rest < 0.015625, series, -tl.log(u)))


@triton.jit
def divided(logits, temperature):
    """logits / T as IEEE has it, where the plain operator may be off by two units in the last place."""
    return tl.math.div_rn(logits, temperature)


@triton.jit
def greatest(values, ids, mask):
    """(value, id) of the greatest value where `mask` is set, ties to the lower id; (-inf, NO_ID) if it never is."""
    value = tl.max(tl.where(mask, values, float("-inf")))
    return value, tl.min(tl.where(mask & (values == value), ids, NO_ID))


@triton.jit
def noisiest(scaled, ids, mask, word, seed, position):
    """(value, id) of the greatest scaled + g of a tile where `mask` is set, ties to the lower id.

    Two winners of the sums in float32 are closer than the noise's error once in 5,000 tiles; only then is the noise of
    the whole tile computed in float64, and else that of the winner alone.
    """
    near = tl.where(mask, scaled + near_gumbel(word), float("-inf"))
    most = tl.max(near)
    bar = tl.where(tl.abs(most) == float("inf"), most, most - (_SLACK + _RELATIVE_SLACK * tl.abs(most)))
    rivals = mask & (near >= bar)
    token = tl.min(tl.where(rivals, ids, NO_ID))
    value = most
    if most > float("-inf"):
        if tl.sum(rivals.to(tl.int32)) == 1:
            alone = tl.max(tl.where(rivals, scaled, float("-inf")))
            value = alone + gumbel(words(seed, position, token >> 2, token & 3))
        else:
            value, token = greatest(scaled + gumbel(word), ids, mask)
    return value, token


@triton.jit
def placed(values, ids):
    """One int64 per token: those of greater values are greater, of equal values that of the lower id is."""
    bits = (values + 0.0).to(tl.int32, bitcast=True)  # -0.0 + 0.0 is 0.0: the two are equal
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    return (ordered << 32) | (ids ^ NO_ID).to(tl.int64)


@triton.jit
def token_of(place):
    """The id that `placed` was given."""
    return (place & NO_ID).to(tl.int32) ^ NO_ID
