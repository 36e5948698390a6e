"""The drafter that never guesses: plain decoding, through the same path as everything else."""

from __future__ import annotations

from collections.abc import Sequence

from .proposer import Ask, Proposal, Verdict


class Nothing:
    name = "none"
    needs_hidden = False

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return [Proposal(self.name)] * len(asks)

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        pass

    def forget(self, seq_id: str) -> None:
        pass
