"""top-k, top-p and min-p on the device without sorting: what a row keeps is everything from one token of it upwards.

Tokens have an order: the likelier first, of equally likely ones the lower id. Each filter keeps a beginning of it, so
it is told by its last token, which a search finds: count the tokens, or add up the weights, at or above several marks
at once, and go on between the two marks where the goal is reached. Weights are whole numbers: their sums are exact, in
any order, so a row's choice depends on nothing but the row.

Few tokens matter, mostly. `tally` counts tokens by their distance from the likeliest, half a nat to a level;
`shortlist` collects the ids of the levels that can hold what the filters keep; the search reads these alone. A row
where they are more than `ROOM` is searched as a whole.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gumbel import NO_ID, divided, noisiest, placed, words

LEVELS = tl.constexpr(64)  # the last holds all that lies more than 31.5 nats below the likeliest
ROOM = tl.constexpr(4096)  # ids of a row's list

# What is kept of a row while it is filtered, int64: the tokens of each level, all weights, the tokens in the list.
MASS = tl.constexpr(64)
LISTED = tl.constexpr(65)
BOOKS = tl.constexpr(66)

_UNIT = tl.constexpr(8796093022208.0)  # 2^43, the weight of the likeliest: 2^19 of them stay below 2^63
_LOWEST = tl.constexpr(-0x8000000000000000)
_HIGHEST = tl.constexpr(0x7FFFFFFFFFFFFFFF)
_WAYS = tl.constexpr(4)


@triton.jit
def below(scaled, top):
    """scaled - top, 0 for the likeliest even where it is infinite."""
    equal = scaled == top
    return tl.where(equal, 0.0, scaled - tl.where(equal, 0.0, top))


@triton.jit
def _weight(distance, mask):
    """exp(distance) in units of 2^-43."""
    return tl.where(mask, tl.exp(distance) * _UNIT, 0.0).to(tl.int64)


@triton.jit
def _level(distance):
    return tl.minimum(tl.maximum(distance, LEVELS * -0.5) * -2.0, LEVELS - 1.0).to(tl.int32)


@triton.jit
def tally(scaled, top, mask, books):
    """Adds a tile of a row to its books."""
    distance = below(scaled, top)
    counts = tl.histogram(_level(distance), LEVELS, mask=mask).to(tl.int64)
    level = tl.arange(0, LEVELS)
    tl.atomic_add(books + level, counts, mask=counts > 0, sem="relaxed")
    tl.atomic_add(books + MASS, tl.sum(_weight(distance, mask)), sem="relaxed")


@triton.jit
def _last_level(books, columns, top_k, top_p, log_min_p):
    """(the last level that can hold a kept token, the tokens up to it)."""
    level = tl.arange(0, LEVELS)
    counts = tl.load(books + level)
    up_to = tl.cumsum(counts, 0)
    last = tl.minimum(log_min_p * -2.0, LEVELS - 2.0).to(tl.int32) + 1
    if (top_k > 0) & (top_k < columns):
        last = tl.sum((up_to < top_k).to(tl.int32))
    elif top_p < 1.0:
        # All that lies beyond a level weighs at most this; where it is less than top-p leaves out, it is left out.
        bounds = counts.to(tl.float32) * tl.exp(level.to(tl.float32) * -0.5)
        beyond = tl.sum(bounds) - tl.cumsum(bounds, 0)
        spare = (1.0 - top_p) * tl.load(books + MASS).to(tl.float64) / _UNIT
        last = tl.sum((beyond * 1.001 + 1e-6 > spare.to(tl.float32)).to(tl.int32))
    last = tl.minimum(last, LEVELS - 1)
    return last, tl.sum(tl.where(level <= last, counts, 0))


@triton.jit
def shortlist(scaled, top, ids, mask, books, list_ids, columns, top_k, top_p, log_min_p):
    """Adds the ids of a tile that may be kept to the row's list, in no fixed order; none where there is no room."""
    last, size = _last_level(books, columns, top_k, top_p, log_min_p)
    if size <= ROOM:
        chosen = mask & (_level(below(scaled, top)) <= last)
        rank = tl.cumsum(chosen.to(tl.int32), 0)
        count = tl.max(rank)
        if count > 0:
            start = tl.atomic_add(books + LISTED, count.to(tl.int64), sem="relaxed")
            tl.store(list_ids + start + rank - 1, ids, mask=chosen)


@triton.jit
def _members(logits, list_ids, listed, start, size, temperature, BLOCK: tl.constexpr):
    """(scaled, ids, mask) of a tile of the list, or of the row where `listed` is 0."""
    index = start + tl.arange(0, BLOCK)
    mask = index < size
    ids = tl.where(listed > 0, tl.load(list_ids + index, mask=index < listed, other=0), index)
    return divided(tl.load(logits + ids, mask=mask, other=float("-inf")), temperature), ids, mask


@triton.jit
def _measured(scaled, ids, mask, top, outer, BY_MASS: tl.constexpr):
    """(place, weight): for top-k each token weighs 1; for top-p, which looks at tokens placed from `outer` on alone,
    as much as it is likely. Tokens at distances that round alike are equally likely to top-p."""
    if BY_MASS:
        distance = below(scaled, top)
        return placed(distance, ids), _weight(distance, mask & (placed(scaled, ids) >= outer))
    return placed(scaled, ids), mask.to(tl.int64)


@triton.jit
def _sum_of(logits, list_ids, listed, size, temperature, top, outer, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int64)
    for start in range(0, size, BLOCK):
        scaled, ids, mask = _members(logits, list_ids, listed, start, size, temperature, BLOCK)
        _, weight = _measured(scaled, ids, mask, top, outer, True)
        total += weight
    return tl.sum(total)


@triton.jit
def _last_place(
    logits, list_ids, listed, size, temperature, top, outer, goal, BY_MASS: tl.constexpr, BLOCK: tl.constexpr
):
    """The highest place from which on upwards the tokens weigh `goal` together; all of them do so."""
    low = tl.full((), _LOWEST, tl.int64)
    high = tl.full((), _HIGHEST, tl.int64)
    while low < high:
        # To the ends of what is there: places are spread unevenly, and often few tokens are left between two marks.
        least = tl.full((BLOCK,), _HIGHEST, tl.int64)
        most = tl.full((BLOCK,), _LOWEST, tl.int64)
        for start in range(0, size, BLOCK):
            scaled, ids, mask = _members(logits, list_ids, listed, start, size, temperature, BLOCK)
            place, weight = _measured(scaled, ids, mask, top, outer, BY_MASS)
            inside = (weight > 0) & (place >= low) & (place <= high)
            least = tl.minimum(least, tl.where(inside, place, _HIGHEST))
            most = tl.maximum(most, tl.where(inside, place, _LOWEST))
        low, high = tl.min(least), tl.max(most)
        if low < high:
            step = ((high >> 1) - (low >> 1)) // (_WAYS // 2) + 1  # the difference itself may not fit
            marks = low + step * tl.arange(0, _WAYS).to(tl.int64)
            sums = tl.zeros((BLOCK, _WAYS), tl.int64)
            for start in range(0, size, BLOCK):
                scaled, ids, mask = _members(logits, list_ids, listed, start, size, temperature, BLOCK)
                place, weight = _measured(scaled, ids, mask, top, outer, BY_MASS)
                sums += tl.where(place[:, None] >= marks[None, :], weight[:, None], 0)
            reached = tl.sum((tl.sum(sums, 0) >= goal).to(tl.int64)) - 1
            low += reached * step
            high = tl.minimum(high, low + step - 1)
    return low


@triton.jit
def filtered(
    logits, list_ids, books, columns, top, seed, position, temperature, top_k, top_p, log_min_p, BLOCK: tl.constexpr
):
    """The id that a row's draw gives with its filters. top: the greatest of its scaled logits."""
    listed = tl.load(books + LISTED).to(tl.int32)
    size = tl.where(listed > 0, listed, columns)
    by_count = tl.full((), _LOWEST, tl.int64)
    by_mass = tl.full((), _LOWEST, tl.int64)
    if (top_k > 0) & (top_k < columns):
        by_count = _last_place(
            logits, list_ids, listed, size, temperature, top, by_count, top_k, BY_MASS=False, BLOCK=BLOCK
        )
    if top_p < 1.0:
        kept = _sum_of(logits, list_ids, listed, size, temperature, top, by_count, BLOCK)
        whole = tl.where((top_k > 0) & (top_k < columns), kept, tl.load(books + MASS))
        share = top_p * whole.to(tl.float64)
        goal = share.to(tl.int64)
        goal = tl.minimum(tl.maximum(goal + (goal.to(tl.float64) < share).to(tl.int64), 1), kept)
        by_mass = _last_place(
            logits, list_ids, listed, size, temperature, top, by_count, goal, BY_MASS=True, BLOCK=BLOCK
        )
    floor = top.to(tl.float64) + log_min_p
    value = tl.full((), float("-inf"), tl.float32)
    token = tl.full((), NO_ID, tl.int32)
    for start in range(0, size, BLOCK):
        scaled, ids, mask = _members(logits, list_ids, listed, start, size, temperature, BLOCK)
        mask &= placed(scaled, ids) >= by_count
        mask &= placed(below(scaled, top), ids) >= by_mass
        mask &= scaled.to(tl.float64) >= floor
        word = words(seed, position, ids >> 2, ids & 3)
        tile_value, tile_token = noisiest(scaled, ids, mask, word, seed, position)
        if (tile_value > value) | ((tile_value == value) & (tile_token < token)):
            value, token = tile_value, tile_token
    return token
