"""What a step costs on this machine, in milliseconds: measured at start-up, corrected while running.

    ms = pace * (curve(rows) + read_ms * keys read + seen_ms * keys seen)

The pace is the machine's: others take their share of it, and it changes by half within minutes. It follows every step
within some ten, and says nothing about which rows are worth their time. That is the business of the rest, the shape,
which changes slowly: it is corrected by how steps compare with their neighbours, which ran at the same pace.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate
from math import exp, log
from typing import NamedTuple

_FOLLOW = 0.15  # of what the pace is off by, each step corrects
_HICCUP = 0.2  # a step further off than this counts as so far off (of the logarithm)
_STEP = 0.04  # of what two neighbours disagree by, each moves its part of the shape
_KEYS = 10.0  # times as far for keys, whose two figures serve all row counts: short contexts hold the curve in place
_ALIKE = 0.1  # of their keys, by which two steps of as many rows may differ and are still alike
_RECENT_S = 0.1  # seconds between two neighbours
_LEAST_KEY = 3e-5  # of a step of one row, that a key is taken to cost at the least at first: nothing cannot be scaled


class Work(NamedTuple):
    """What a step computes. read: keys of all sequences. seen: keys that rows look at, summed over all rows."""

    rows: int
    read: int = 0
    seen: int = 0

    def beside(self, context: int, rows: int) -> Work:
        """This and so many new rows of one more sequence, behind `context` computed ones."""
        seen = rows * context + rows * (rows + 1) // 2
        return Work(self.rows + rows, self.read + context + rows, self.seen + seen)


class CostCurve:
    """Piecewise linear through measured points, never falling; flat before the first, proportional after the last.

    points: rows -> milliseconds, at least one, all positive. Raises ValueError otherwise.
    """

    def __init__(self, points: Mapping[int, float]) -> None:
        if not points or min(points) < 1 or min(points.values()) <= 0:
            raise ValueError(f"a cost curve needs positive rows and times, got {dict(points)}")
        self._rows = sorted(points)
        self._observed = [points[rows] for rows in self._rows]
        self._ms = self._straightened()

    def _straightened(self) -> list[float]:
        # A view, so that a point lifted by a hiccup below it comes down again with it.
        return list(accumulate(self._observed, max))

    def cost(self, rows: int) -> float:
        """Milliseconds of so many rows."""
        i = bisect_left(self._rows, rows)
        if i == 0:
            return self._ms[0]
        if i == len(self._rows):
            return self._ms[-1] * rows / self._rows[-1]
        low, high = self._rows[i - 1], self._rows[i]
        return self._ms[i - 1] + (self._ms[i] - self._ms[i - 1]) * (rows - low) / (high - low)

    def move(self, *changes: tuple[int, float]) -> None:
        """Changes (rows, by): multiply what so many rows cost by about e^by: move the points around them, the nearer
        one more. What two changes ask of one point is summed first: what they disagree about moves nothing.
        """
        moves: dict[int, float] = {}
        for rows, by in changes:
            i = min(bisect_left(self._rows, rows), len(self._rows) - 1)
            for point in {max(i - 1, 0), i}:
                distance = abs(self._rows[point] - rows) / max(rows, self._rows[point])
                moves[point] = moves.get(point, 0.0) + (1 - distance) * by
        for point, by in moves.items():
            if by < 0 and self._observed[point] < self._ms[point]:
                continue  # it lies below a hiccup: it is not why the curve is too high here, and would sink without end
            self._observed[point] *= exp(by)
        self._ms = self._straightened()


class StepCost:
    """The model above. points: those of the curve, in milliseconds, of steps without keys.

    read_ms: of a key, once for its sequence: it comes from memory. seen_ms: of a key, for each row that looks at it.
    """

    def __init__(
        self,
        points: Mapping[int, float],
        read_ms: float = 0.0,
        seen_ms: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._curve = CostCurve(points)
        self._clock = clock
        self.pace = 1.0
        self._read_ms = read_ms
        self._seen_ms = seen_ms
        self._by_rows: list[float] = []
        self._before: tuple[Work, float] | None = None  # the step before, and its milliseconds
        self._ended = 0.0  # when, in seconds

    @classmethod
    def measured(cls, points: Mapping[int, float], keys: int, with_keys: Mapping[int, float]) -> StepCost:
        """From times of steps without keys and of steps behind so many, of two row counts that `points` has too."""
        low, high = sorted(with_keys)
        least = _LEAST_KEY * min(points.values()) * keys
        few, many = (with_keys[rows] - points[rows] for rows in (low, high))
        seen = max((many - few) / (high - low), least)
        read = max(few - low * seen, least)
        return cls(points, read / keys, seen / keys)

    @property
    def seen_ms(self) -> float:
        """Milliseconds now of one more key that a row looks at."""
        return self.pace * self._seen_ms

    @property
    def token_ms(self) -> float:
        """Milliseconds now of a step of one row that looks at as many keys as a row of the last step did."""
        last = self._before[0] if self._before else Work(1)
        keys = last.seen // last.rows
        return self.ms(Work(1, keys, keys))

    def by_rows(self, most: int) -> list[float]:
        """Milliseconds now of 0 … most rows, and perhaps more, keys not counted; valid until the next observation."""
        for rows in range(len(self._by_rows), most + 1):
            self._by_rows.append(self.pace * self._curve.cost(rows))
        return self._by_rows

    def ms(self, work: Work) -> float:
        """Milliseconds now."""
        return self.pace * self._shape(work)

    def _shape(self, work: Work) -> float:
        return self._curve.cost(work.rows) + self._read_ms * work.read + self._seen_ms * work.seen

    def rows_within(self, ms: float, work: Work, context: int, most: int) -> int:
        """How many rows of a sequence, up to `most` behind `context` others, may join `work` in a step that takes no
        longer than `ms`.
        """
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.ms(work.beside(context, middle)) <= ms:
                low = middle
            else:
                high = middle - 1
        return low

    def observe(self, work: Work, ms: float) -> None:
        """A step took so long."""
        if ms <= 0:
            return
        now, before = self._clock(), self._before
        recent = now - self._ended < _RECENT_S + ms / 1e3  # else the machine may have another pace
        if before is not None and recent and not _alike(before[0], work):
            self._compare(before, (work, ms))
        self._before, self._ended = (work, ms), now
        self.pace *= exp(_FOLLOW * _clipped(log(ms / self.ms(work))))
        self._by_rows.clear()

    def _compare(self, before: tuple[Work, float], now: tuple[Work, float]) -> None:
        """Two steps at one pace: where the shape has them in another proportion, it gives way on both sides."""
        shapes = [self._shape(work) for work, _ in (before, now)]
        by = _STEP * _clipped(log(now[1] / shapes[1]) - log(before[1] / shapes[0]))
        # Each part of what a step costs takes its share of the blame.
        moves, read, seen = [], 0.0, 0.0
        for (work, _), shape, sign in zip((before, now), shapes, (-by, by), strict=True):
            blame = sign / shape
            moves.append((work.rows, blame * self._curve.cost(work.rows)))
            read += blame * self._read_ms * work.read
            seen += blame * self._seen_ms * work.seen
        self._curve.move(*moves)
        self._read_ms *= exp(_KEYS * read)
        self._seen_ms *= exp(_KEYS * seen)


def _alike(one: Work, other: Work) -> bool:
    """As the steps of a stream are, whose keys grow one by one: their times differ by noise, which says nothing."""
    return one.rows == other.rows and abs(one.seen - other.seen) <= _ALIKE * max(one.seen, other.seen)


def _clipped(off: float) -> float:
    return min(max(off, -_HICCUP), _HICCUP)
