"""How well a reply's guesses did: counted step by step, added up over choices, told in vLLM's shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from .fields import JsonObject


@dataclass(slots=True)
class SpecFigures:
    """Of the steps that verified at least one guess.

    histogram: [i] counts the steps that kept i guesses; k + 1 entries, k being the most guesses verified in one step.
    """

    drafted: int = 0  # guesses verified
    accepted: int = 0  # guesses that became tokens the reply keeps
    histogram: list[int] = field(default_factory=lambda: [0])

    def add(self, drafted: int, accepted: int) -> None:
        """One step; one without guesses does not count."""
        if not drafted:
            return
        self.drafted += drafted
        self.accepted += accepted
        self.histogram += [0] * (drafted + 1 - len(self.histogram))
        self.histogram[accepted] += 1

    def __add__(self, other: SpecFigures) -> SpecFigures:
        """As if one reply had made the steps of both."""
        histogram = [a + b for a, b in zip_longest(self.histogram, other.histogram, fillvalue=0)]
        return SpecFigures(self.drafted + other.drafted, self.accepted + other.accepted, histogram)

    def body(self) -> JsonObject:
        """The mean acceptance length counts the bonus token: 1 + accepted / steps, 1 without a step; the rate is
        accepted / drafted, 0 when nothing was drafted; `num_spec_tokens` is k."""
        steps = sum(self.histogram)
        return {
            "mean_acceptance_length": 1 + self.accepted / max(steps, 1),
            "draft_acceptance_rate": self.accepted / max(self.drafted, 1),
            "acceptance_histogram": list(self.histogram),
            "num_spec_steps": steps,
            "num_accepted_draft_tokens": self.accepted,
            "num_draft_tokens": self.drafted,
            "num_spec_tokens": len(self.histogram) - 1,
        }
