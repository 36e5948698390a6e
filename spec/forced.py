"""Drafting what a grammar leaves no choice about: the names and brackets of a JSON object cost no pass of their own."""

from __future__ import annotations

from collections.abc import Sequence

from .proposer import Ask, Proposal, Verdict

_SURE = 0.99


class Forced:
    """One chain of the tokens that must come next, for replies that follow a grammar."""

    name = "grammar"
    needs_hidden = False

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return [self._chain(ask) for ask in asks]

    def _chain(self, ask: Ask) -> Proposal:
        if ask.constraint is None:
            return Proposal(self.name)
        tokens = tuple(ask.constraint.forced())[: ask.max_guesses]
        return Proposal(self.name, tokens, tuple(range(-1, len(tokens) - 1)), (_SURE,) * len(tokens))

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        pass  # the next ask carries the constraint

    def forget(self, seq_id: str) -> None:
        pass
