from __future__ import annotations

from paceline.spec.nothing import Nothing
from paceline.spec.proposer import Ask, Verdict


def test_never_guesses() -> None:
    nothing = Nothing()
    asks = [Ask(str(i), [1, 2] * 9, 3, 10) for i in range(3)]
    nothing.observe([Verdict("0", (0,), 1)])
    nothing.forget("0")
    proposals = nothing.propose(asks)
    assert len(proposals) == 3
    assert all(proposal.source == "none" and proposal.tokens == proposal.parents == () for proposal in proposals)
