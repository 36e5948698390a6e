"""What asking a drafter that costs time has brought, in tokens, and so whether to ask it now."""

from __future__ import annotations

from collections.abc import Sequence

from .stats import Ratio

_HOPED = 1.0  # tokens a sequence gains per step from a drafter nothing is known about
_SHARED = (1.0, 0.9)  # prior and decay: some ten steps count
_OWN = (0.5, 0.8)
_BINS_PER_TOKEN = 2  # of what is expected without it: a drafter that finds the same guesses gains nothing
_BINS = 8
# Of a drafter's own time, what asking it takes: its guesses are merged, ranked and learnt from, and those who are asked
# anew or seldom have more to catch up with than is usual.
_PRICE = 1.4
_TRIAL_SHARE = 0.01  # of all time goes into trying a drafter that did not pay


class Gain:
    """Tokens gained per sequence and step, net of the rows they cost: by drafter, by how much is expected without it,
    and by sequence. A drafter that does not pay is tried now and then, in a hundredth of the time, so it can recover. A
    trial lasts until it has an answer: a drafter may have to catch up with a sequence first.
    """

    def __init__(self) -> None:
        self._shared: dict[tuple[str, int], Ratio] = {}
        self._own: dict[str, dict[str, Ratio]] = {}
        self._saved_ms: dict[str, float] = {}
        self._trials: dict[str, set[str]] = {}  # by drafter, the sequences it is tried with

    def expected(self, drafter: str, seq_id: str, without: float) -> float:
        """without: guesses of this sequence that are expected to be accepted if the drafter is not asked."""
        shared = self._shared.get((drafter, _bin(without)))
        own = self._own.get(seq_id, {}).get(drafter)
        return _HOPED * (shared.value if shared else 1.0) * (own.value if own else 1.0)

    def observe(self, drafter: str, seq_id: str, without: float, gained: float) -> None:
        """The drafter was asked and has caught up with the sequence."""
        self._trials.pop(drafter, None)
        shared = self._shared.setdefault((drafter, _bin(without)), Ratio(*_SHARED))
        own = self._own.setdefault(seq_id, {}).setdefault(drafter, Ratio(*_OWN))
        own.add(gained, _HOPED * shared.value)
        shared.add(gained, _HOPED)

    def pays(
        self, drafter: str, cost_ms: float, sequences: Sequence[tuple[str, float]], rate: float, step_ms: float
    ) -> bool:
        """Whether to spend `cost_ms` on guesses for sequences (id, accepted guesses expected without them).

        rate: tokens per millisecond of the step as planned so far, which takes `step_ms`.
        """
        cost_ms *= _PRICE
        gain = sum(self.expected(drafter, seq_id, without) for seq_id, without in sequences)
        if gain > rate * cost_ms:
            return True
        saved = self._saved_ms.get(drafter, 0.0) + _TRIAL_SHARE * step_ms
        asking = {seq_id for seq_id, _ in sequences}
        tried = saved >= cost_ms or not asking.isdisjoint(self._trials.get(drafter, ()))
        if tried:
            self._trials[drafter] = asking
        self._saved_ms[drafter] = saved - cost_ms if tried else saved
        return tried

    def forget(self, seq_id: str) -> None:
        self._own.pop(seq_id, None)


def _bin(tokens: float) -> int:
    return min(int(tokens * _BINS_PER_TOKEN), _BINS - 1)
