"""What a step costs on this machine, in milliseconds by rows: measured at start-up, corrected while running."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

_STEP = 0.05  # how far one observation moves the curve
_CLIP = 2.0  # an observation further off than this is a hiccup of the machine, not news


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
        """Milliseconds a step with this many rows takes."""
        i = bisect_left(self._rows, rows)
        if i == 0:
            return self._ms[0]
        if i == len(self._rows):
            return self._ms[-1] * rows / self._rows[-1]
        low, high = self._rows[i - 1], self._rows[i]
        return self._ms[i - 1] + (self._ms[i] - self._ms[i - 1]) * (rows - low) / (high - low)

    def correct(self, rows: int, ms: float) -> None:
        """Take one observed step into account: move the points around it a little towards it."""
        ratio = min(max(ms / self.cost(rows), 1 / _CLIP), _CLIP)
        i = min(bisect_left(self._rows, rows), len(self._rows) - 1)
        for point in {max(i - 1, 0), i}:
            if ratio < 1 and self._observed[point] < self._ms[point]:
                continue  # it lies below a hiccup: it is not why the curve is too high here, and would sink without end
            distance = abs(self._rows[point] - rows) / max(rows, self._rows[point])
            self._observed[point] *= 1 + _STEP * (1 - distance) * (ratio - 1)
        self._ms = self._straightened()

    def rows_within(self, ms: float, most: int) -> int:
        """The largest row count up to `most` whose step takes no longer than `ms`; 0 when even one row does."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.cost(middle) <= ms:
                low = middle
            else:
                high = middle - 1
        return low
