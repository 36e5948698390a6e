from __future__ import annotations

from collections.abc import Sequence

import pytest

from paceline.spec.drafters import AUTO, Drafters
from paceline.spec.ngram import NGram
from paceline.spec.proposer import Ask, Proposal, Verdict


class Recorder:
    """Guesses one token, its own mark, and keeps all that it was told."""

    needs_hidden = False

    def __init__(self, name: str, mark: int) -> None:
        self.name, self.mark = name, mark
        self.calls: list[list[str]] = []
        self.observed: list[str] = []
        self.forgotten: list[str] = []

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        self.calls.append([ask.seq_id for ask in asks])
        return [Proposal(self.name, (self.mark + len(ask.tokens),), (-1,), (0.5,)) for ask in asks]

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self.observed += [verdict.seq_id for verdict in verdicts]

    def forget(self, seq_id: str) -> None:
        self.forgotten.append(seq_id)


def asks(count: int) -> list[Ask]:
    return [Ask(f"s{i}", [7] * i, 0, 4) for i in range(count)]


def test_each_ask_goes_to_its_drafter_and_answers_keep_their_order() -> None:
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    proposals = drafters.propose(asks(5), ["second", AUTO, "none", "first", "second"])
    assert [proposal.source for proposal in proposals] == ["second", "first", "none", "first", "second"]
    assert [proposal.tokens for proposal in proposals] == [(200,), (101,), (), (103,), (204,)]
    assert first.calls == [["s1", "s3"]]  # one call each, with all of its asks
    assert second.calls == [["s0", "s4"]]


def test_drafter_without_asks_is_not_called() -> None:
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    drafters.propose(asks(2), ["second", "none"])
    assert drafters.propose([], []) == []
    assert first.calls == []
    assert len(second.calls) == 1


def test_all_drafters_hear_of_verdicts_and_ends() -> None:
    """A request may name any of them at any time, so each keeps itself up to date."""
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    drafters.observe([Verdict("a", (0,), 5), Verdict("b", (0, 1), 6)])
    drafters.forget("a")
    for drafter in (first, second):
        assert drafter.observed == ["a", "b"]
        assert drafter.forgotten == ["a"]


def test_modes_name_what_is_loaded() -> None:
    loaded = Drafters([NGram()])
    assert set(loaded.modes) == {"auto", "ngram", "none"}
    assert [loaded.drafts(mode) for mode in ("auto", "ngram", "none")] == [True, True, False]
    bare = Drafters()
    assert set(bare.modes) == {"auto", "none"}
    assert not bare.drafts(AUTO)
    assert bare.propose(asks(2), [AUTO, "none"]) == [Proposal("none")] * 2


@pytest.mark.parametrize("mode", ["medusa", "", "AUTO"])
def test_unknown_mode_is_an_error(mode: str) -> None:
    drafters = Drafters([NGram()])
    with pytest.raises(KeyError):
        drafters.drafts(mode)
    with pytest.raises(KeyError):
        drafters.propose(asks(1), [mode])
