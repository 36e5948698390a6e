from __future__ import annotations

from collections.abc import Sequence

import pytest

from paceline.spec.drafters import AUTO, Drafters
from paceline.spec.merge import NO_GUESSES, Guesses
from paceline.spec.proposer import Ask, Proposal, Verdict
from paceline.spec.suffix import Suffix


class Recorder:
    """Guesses one token, its own mark, and keeps all that it was told."""

    needs_hidden = False

    def __init__(self, name: str, mark: int, ms: float = 0.0) -> None:
        self.name, self.mark, self.ms = name, mark, ms
        self.calls: list[list[str]] = []
        self.observed: list[str] = []
        self.forgotten: list[str] = []

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return self.ms * len(asks)

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        self.calls.append([ask.seq_id for ask in asks])
        return [Proposal(self.name, (self.mark + len(ask.tokens),), (-1,), (0.5,)) for ask in asks]

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self.observed += [verdict.seq_id for verdict in verdicts]

    def forget(self, seq_id: str) -> None:
        self.forgotten.append(seq_id)


class Purse:
    """Says yes or no to whoever costs time, and keeps what it was asked."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[tuple[str, float, list[int], list[int]]] = []

    def __call__(self, drafter: str, cost_ms: float, asking: Sequence[int], guesses: Sequence[Guesses]) -> bool:
        self.asked.append((drafter, cost_ms, list(asking), [len(each) for each in guesses]))
        return drafter not in self.refused


def asks(count: int) -> list[Ask]:
    return [Ask(f"s{i}", [7] * i, 0, 4) for i in range(count)]


def sources(guesses: Guesses) -> list[str]:
    return [vote.source for votes in guesses.votes for vote in votes]


def test_each_ask_goes_to_the_drafter_it_names_and_auto_to_all() -> None:
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    guesses = drafters.propose(asks(5), ["second", AUTO, "none", "first", "second"], Purse())
    assert [each.tokens for each in guesses] == [(200,), (101, 201), (), (103,), (204,)]
    assert [sources(each) for each in guesses] == [["second"], ["first", "second"], [], ["first"], ["second"]]
    assert first.calls == [["s1", "s3"]]  # one call each, with all of its asks
    assert second.calls == [["s0", "s1", "s4"]]


def test_what_drafters_agree_on_is_guessed_once() -> None:
    drafters = Drafters([Recorder("first", 100), Recorder("second", 100)])
    (guesses,) = drafters.propose(asks(1), [AUTO], Purse())
    assert guesses.tokens == (100,)
    assert sources(guesses) == ["first", "second"]


def test_drafter_without_asks_is_not_called() -> None:
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    drafters.propose(asks(2), ["second", "none"], Purse())
    assert drafters.propose([], [], Purse()) == []
    assert first.calls == []
    assert len(second.calls) == 1


def test_those_that_cost_time_come_last_the_cheapest_first_and_only_if_they_pay() -> None:
    dear, free, cheap = Recorder("dear", 100, 3.0), Recorder("free", 200), Recorder("cheap", 300, 1.0)
    drafters, purse = Drafters([dear, free, cheap]), Purse("dear")
    guesses = drafters.propose(asks(3), [AUTO, "dear", "free"], purse)
    assert [each.tokens for each in guesses] == [(200, 300), (), (202,)]
    assert purse.asked == [("cheap", 1.0, [0], [1, 0, 1]), ("dear", 6.0, [0, 1], [2, 0, 1])]
    assert dear.calls == []


def test_a_drafter_is_asked_for_those_it_works_for() -> None:
    class Picky(Recorder):
        def cost_ms(self, asks: Sequence[Ask]) -> float:
            return 2.0 * sum(ask.seq_id != "s1" for ask in asks)

    picky, purse = Picky("picky", 100), Purse()
    guesses = Drafters([picky]).propose(asks(3), [AUTO] * 3, purse)
    assert [each.tokens for each in guesses] == [(100,), (), (102,)]
    assert purse.asked == [("picky", 4.0, [0, 2], [0, 0, 0])]


def test_all_drafters_hear_of_verdicts_and_ends() -> None:
    """A request may name any of them at any time, so each keeps itself up to date."""
    first, second = Recorder("first", 100), Recorder("second", 200)
    drafters = Drafters([first, second])
    drafters.observe([Verdict("a", (0,)), Verdict("b", (0, 1))])
    drafters.forget("a")
    for drafter in (first, second):
        assert drafter.observed == ["a", "b"]
        assert drafter.forgotten == ["a"]


def test_modes_name_what_is_loaded() -> None:
    loaded = Drafters([Suffix()])
    assert loaded.modes == ("auto", "suffix", "none")
    assert loaded.names == ("suffix",)
    assert [loaded.drafts(mode) for mode in ("auto", "suffix", "none")] == [True, True, False]
    bare = Drafters()
    assert bare.modes == ("auto", "none")
    assert bare.names == ()
    assert not bare.drafts(AUTO)
    assert bare.propose(asks(2), [AUTO, "none"], Purse()) == [NO_GUESSES] * 2


@pytest.mark.parametrize("mode", ["medusa", "", "AUTO"])
def test_unknown_mode_is_an_error(mode: str) -> None:
    drafters = Drafters([Suffix()])
    with pytest.raises(KeyError):
        drafters.drafts(mode)
    with pytest.raises(KeyError):
        drafters.propose(asks(1), [mode], Purse())


@pytest.mark.parametrize("method", ["cost_ms", "propose", "observe", "forget"])
def test_a_drafter_that_raises_is_left_out_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def breaks(*given: object) -> None:
        raise RuntimeError("out of wit")

    before, bad, after, dear = Recorder("a", 100), Recorder("bad", 200), Recorder("c", 300), Recorder("d", 400, 1.0)
    monkeypatch.setattr(bad, "needs_hidden", True)
    monkeypatch.setattr(bad, method, breaks)
    drafters, purse = Drafters([before, bad, after, dear]), Purse()
    assert drafters.needs_hidden(AUTO)
    guesses = drafters.propose(asks(2), [AUTO, "bad"], purse)
    drafters.observe([Verdict("s0", (0,))])
    drafters.forget("s0")
    assert [each for each in sources(guesses[0]) if each != "bad"] == ["a", "c", "d"]
    assert [each.forgotten for each in (before, after, dear)] == [["s0"]] * 3
    assert [each.observed for each in (before, after, dear)] == [["s0"]] * 3
    (record,) = caplog.records
    assert record.getMessage() == "The drafter bad failed and is not asked any more; replies go on without it."
    assert record.exc_info

    assert drafters.modes == ("auto", "a", "bad", "c", "d", "none")  # requests that name it are still taken
    assert not drafters.drafts("bad")
    assert not drafters.needs_hidden(AUTO)
    guesses = drafters.propose(asks(2), [AUTO, "bad"], purse)
    assert sources(guesses[0]) == ["a", "c", "d"]
    assert guesses[1] == NO_GUESSES
    assert len(caplog.records) == 1


def test_what_others_guessed_is_known_when_the_last_free_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    free, bad, dear, purse = Recorder("free", 100), Recorder("bad", 200), Recorder("dear", 300, 1.0), Purse()
    monkeypatch.setattr(bad, "propose", lambda asks: [])  # not one proposal per ask
    (guesses,) = Drafters([free, bad, dear]).propose(asks(1), [AUTO], purse)
    assert purse.asked == [("dear", 1.0, [0], [1])]
    assert sources(guesses) == ["free", "dear"]


def test_only_those_that_measure_what_they_take_forget_it() -> None:
    class Timing(Recorder):
        restarts = 0

        def restart(self) -> None:
            self.restarts += 1

    timing = Timing("timing", 100)
    Drafters([Recorder("first", 200), timing]).restart()
    assert timing.restarts == 1
