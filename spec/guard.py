"""Whether drafting, with all it costs, makes more tokens than plain decoding beside so many sequences: measured, not
modelled. The planner weighs rows; what proposals, trees and their bookkeeping take on the host shows only here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_FIRST = 12  # steps before plain decoding is tried for the first time
_PERIOD = 256  # steps after which the other way is tried again
_TRIAL = 8  # steps that takes
_DECAY = 0.97  # per observation: some thirty steps count
_ALONE = 1  # sequences that the planner's own reckoning is enough for


@dataclass(slots=True)
class _Rate:
    tokens: float = 0.0
    ms: float = 0.0

    def add(self, tokens: int, ms: float) -> None:
        self.tokens = _DECAY * self.tokens + tokens
        self.ms = _DECAY * self.ms + ms

    @property
    def value(self) -> float | None:
        """Tokens per millisecond; None before anything was measured."""
        return self.tokens / self.ms if self.ms > 0 else None


@dataclass(slots=True)
class _Lane:
    """Steps with about as many sequences."""

    steps: int = 0  # that were observed
    drafting: _Rate = field(default_factory=_Rate)
    plain: _Rate = field(default_factory=_Rate)

    def drafts(self, measured: bool) -> bool:
        trial = measured and self.steps >= _FIRST and (self.steps - _FIRST) % _PERIOD < _TRIAL
        with_guesses, without = self.drafting.value, self.plain.value
        better = with_guesses is None or without is None or with_guesses >= without
        return better != trial

    def observe(self, drafted: bool, tokens: int, ms: float) -> None:
        self.steps += 1
        (self.drafting if drafted else self.plain).add(tokens, ms)


class Guard:
    """Drafting or plain, by how many sequences decode, in powers of two."""

    def __init__(self) -> None:
        self._lanes: dict[int, _Lane] = {}

    def drafts(self, sequences: int, measured: bool) -> bool:
        """Whether the coming step shall draft for sequences that may have guesses; one is always drafted for.

        measured: whether `observe` will hear of the step; in any other nothing is tried.
        """
        return sequences <= _ALONE or self._lanes.setdefault(sequences.bit_length(), _Lane()).drafts(measured)

    def observe(self, sequences: int, drafted: bool, tokens: int, ms: float) -> None:
        """A step that only decoded took `ms` from end to end and made so many tokens."""
        if sequences > _ALONE:
            self._lanes.setdefault(sequences.bit_length(), _Lane()).observe(drafted, tokens, ms)
