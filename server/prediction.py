"""How much of a predicted output came true: OpenAI's accepted and rejected prediction tokens.

Reply and prediction are compared, not what was drafted: the figures are those of the texts, the same in every mode.
"""

from __future__ import annotations

from collections.abc import Sequence


class PredictionMatch:
    """Follows a reply along the prediction. Where they part it goes on at the next place that has the reply's last two
    tokens, so text between may be left out, put in or changed. O(1) per token.

    prediction: tokens. accepted: how many of them the reply has, in order; the others are rejected.
    """

    def __init__(self, prediction: Sequence[int]) -> None:
        self._prediction = prediction
        self._places: dict[tuple[int, int], list[int]] = {}  # pair -> where it ends, the last place first
        for end in range(len(prediction) - 1, 0, -1):
            self._places.setdefault((prediction[end - 1], prediction[end]), []).append(end)
        self._next = 0
        self._before: int | None = None  # the reply's last token, where it stands for itself
        self.accepted = 0

    @property
    def rejected(self) -> int:
        return len(self._prediction) - self.accepted

    def push(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if self._next < len(self._prediction) and self._prediction[self._next] == token:
                self._next += 1
                self.accepted += 1
                self._before = None
            elif self._before is not None and (end := self._place(self._before, token)) is not None:
                self._next = end + 1
                self.accepted += 2
                self._before = None
            else:
                self._before = token

    def _place(self, before: int, token: int) -> int | None:
        """Where the pair ends, further on."""
        places = self._places.get((before, token), [])
        while places and places[-1] <= self._next:
            places.pop()  # passed for good
        return places[-1] if places else None
