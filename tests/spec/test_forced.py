from __future__ import annotations

from collections.abc import Sequence

from paceline.spec.drafters import Drafters
from paceline.spec.forced import Forced
from paceline.spec.proposer import Ask, Proposal


class Line:
    """Only these tokens, in this order."""

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens

    def fits(self, tokens: Sequence[int]) -> int:
        same = [a == b for a, b in zip(tokens, self.tokens, strict=False)]
        return same.index(False) if False in same else len(same)

    def forced(self) -> Sequence[int]:
        return self.tokens


def test_what_must_come_is_proposed_as_one_chain_as_long_as_there_is_room() -> None:
    drafter = Forced()
    asks = [
        Ask("free", [1], 1, 8),
        Ask("forced", [1], 1, 8, constraint=Line(4, 5, 6)),
        Ask("short", [1], 1, 2, constraint=Line(4, 5, 6)),
        Ask("open", [1], 1, 8, constraint=Line()),
    ]
    free, forced, short, open_ = drafter.propose(asks)
    assert (free, open_) == (Proposal("grammar"), Proposal("grammar"))
    assert forced == Proposal("grammar", (4, 5, 6), (-1, 0, 1), forced.probabilities)
    assert min(forced.probabilities) > 0.9
    assert short.tokens == (4, 5)
    assert drafter.cost_ms(asks) == 0.0


def test_guesses_that_cannot_come_are_left_out_of_what_all_drafters_find() -> None:
    class Guesser(Forced):
        name = "guesser"

        def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
            return [Proposal(self.name, (4, 9, 5), (-1, -1, 0), (0.5,) * 3) for _ in asks]

    class Slow(Guesser):
        name = "slow"

        def cost_ms(self, asks: Sequence[Ask]) -> float:
            return 1.0

    seen: list[list[tuple[int, ...]]] = []
    asks = [Ask("free", [1], 1, 8), Ask("forced", [1], 1, 8, constraint=Line(4, 5, 6))]
    drafters = Drafters([Guesser(), Forced(), Slow()])

    def pays(drafter: str, cost_ms: float, asking: Sequence[int], guesses: Sequence[object]) -> bool:
        seen.append([each.tokens for each in guesses])  # type: ignore[attr-defined]
        return True

    free, forced = drafters.propose(asks, ["auto"] * 2, pays)
    assert seen == [[(4, 9, 5), (4, 5, 6)]], "whether a drafter pays is asked of what fits"
    assert (free.tokens, forced.tokens) == ((4, 9, 5), (4, 5, 6))
    assert [vote.source for vote in forced.votes[1]] == ["guesser", "grammar", "slow"]
