from __future__ import annotations

from typing import Any

from token_replies import TOKENIZER, letters
from traces import chain_trace

from paceline.server.committer import Piece, PromptCounts
from paceline.server.step_counts import TREES_KEPT, StepCounts, add_counts, without_trees
from paceline.server.step_trace import step_body


def test_counts_wait_for_the_next_delta_and_start_again() -> None:
    counts = StepCounts()
    assert not counts.pending
    counts.add(Piece(drafted=3, accepted=2, tokens=(1, 2, 3), source="suffix", reason="best"))
    counts.add(Piece(drafted=1, accepted=0, tokens=(4,), reason="budget"))
    counts.add(Piece())  # the end, without a step of its own
    assert counts.pending
    assert counts.take(()) == {"drafted": 4, "accepted": 2, "emitted": 4, "source": "", "reason": "budget"}
    assert not counts.pending
    assert counts.take(None) == {"drafted": 0, "accepted": 0, "emitted": 0, "source": "", "reason": "budget"}


def test_what_the_prompt_took_is_told_once_with_the_first_delta_that_leaves() -> None:
    counts = StepCounts()
    counts.add(Piece(tokens=(1,), prompt=PromptCounts(9, 4)))
    counts.add(Piece(tokens=(2,)))  # both of them before any text
    first, second = counts.take(()), counts.take(())
    assert (first["input_tokens"], first["cached_tokens"]) == (9, 4)
    assert not {"input_tokens", "cached_tokens"} & second.keys()
    assert add_counts(first, second) == first  # of merged deltas too


def test_merged_deltas_sum_their_counts() -> None:
    first = {"drafted": 1, "accepted": 0, "emitted": 1, "source": "", "reason": "best"}
    second = {"drafted": 2, "accepted": 2, "emitted": 3, "source": "suffix", "reason": "budget"}
    assert add_counts(first, second) == second | {"drafted": 3, "emitted": 4}


def step(text: str) -> dict[str, Any]:
    tokens = letters(text)
    return step_body(chain_trace(tokens, ["suffix"] * (len(tokens) - 1)), 1.0, "best", TOKENIZER)


def test_steps_wait_for_the_next_delta_and_what_its_text_is_made_of_comes_with_them() -> None:
    counts = StepCounts()
    assert not counts.traced
    for text in ("ab", "c"):
        counts.add(Piece(tokens=tuple(letters(text)), step=step(text)))
    assert counts.traced
    taken = counts.take(((2, "suffix"), (1, "")))
    assert (taken["steps"], taken["spans"]) == ([step("ab"), step("c")], [[2, "suffix"], [1, ""]])
    assert counts.traced
    taken = counts.take(None)
    assert taken["steps"] == []
    assert "spans" not in taken


def test_steps_that_wait_long_for_a_delta_lose_their_trees() -> None:
    """As those of a call whose arguments are only told as a whole: what waits must not grow with every tree."""
    counts = StepCounts()
    for _ in range(TREES_KEPT + 3):
        counts.add(Piece(tokens=tuple(letters("ab")), step=step("ab")))
    whole = step("ab")
    assert counts.take(None)["steps"] == [whole | {"tree": None}] * 3 + [whole] * TREES_KEPT


def traced(text: str, *spans: list[object]) -> dict[str, Any]:
    counts = StepCounts()
    counts.add(Piece(drafted=len(text) - 1, accepted=len(text) - 1, tokens=tuple(letters(text)), step=step(text)))
    return counts.take(None) | ({"spans": list(spans)} if spans else {})


def test_of_merged_deltas_the_newest_steps_keep_their_trees() -> None:
    first, second = traced("ab", [1, "x"]), traced("cd", [2, ""], [1, "y"])
    kept = (repr(first), repr(second))
    both = add_counts(first, second)
    assert [entry["tree"] for entry in both["steps"]] == [step("ab")["tree"], step("cd")["tree"]]
    assert [entry["tokens"] for entry in both["steps"]] == [step("ab")["tokens"], step("cd")["tokens"]]
    assert both["spans"] == [[1, "x"], [2, ""], [1, "y"]]
    assert both["emitted"] == 4
    many = both
    for _ in range(TREES_KEPT):
        many = add_counts(many, traced("e"))
    assert many["steps"][:2] == [entry | {"tree": None} for entry in both["steps"]]
    assert [entry["tree"] for entry in many["steps"][2:]] == [step("e")["tree"]] * TREES_KEPT
    assert (repr(first), repr(second)) == kept
    bare = add_counts(first, {"drafted": 0, "accepted": 0, "emitted": 0, "steps": []})
    assert bare["steps"] == first["steps"]  # no newer step came


def test_what_merged_text_is_made_of_is_told_where_both_deltas_tell_it() -> None:
    known, unknown = traced("ab", [1, "x"]), traced("cd")
    for first, second in ((known, unknown), (unknown, known), (known, {}), ({}, known)):
        assert "spans" not in add_counts(first, second)
    assert add_counts({}, known)["emitted"] == add_counts(known, {})["emitted"] == 2


def test_without_trees_all_else_is_there() -> None:
    counts = traced("ab", [2, "x"])
    bare = without_trees(counts)
    assert bare == counts | {"steps": [step("ab") | {"tree": None}]}
    assert counts["steps"][0]["tree"] is not None
