"""Pieces in, events and the response object out: every event valid, however the reply is cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from realtime_session import LIMITS, HandReply
from responses_api import check_stream, order_of, output_text
from responses_session import MarkedReader
from vocabularies import byte_level_tokenizer

from paceline.engine.request import Delta, Finish, TokenLogprob
from paceline.server.committer import Committer, Piece
from paceline.server.fields import Fields
from paceline.server.parameters import Parameters
from paceline.server.reply_parts import Words
from paceline.server.responses.events import ResponseEvents
from paceline.server.responses.items import Call, Message
from paceline.server.responses.request import read_request
from paceline.server.stop_strings import StopStrings

TOKENIZER = byte_level_tokenizer()
MIXED = '^let me see^I look: {"a":1}{"b":22}done ďábel'


def events_of(**asked: Any) -> tuple[ResponseEvents, Committer]:
    request = read_request(Fields({"input": "hi", **asked}), LIMITS, Parameters(), find=lambda _: None, max_items=10)
    committer = Committer(TOKENIZER, stops=StopStrings(()), stop_ids=(2,), prompt_tokens=7, reader=MarkedReader())
    numbers = iter(range(1000))
    events = ResponseEvents(
        request,
        HandReply(committer),
        id="resp_1",
        model="tiny",
        names=TOKENIZER,
        new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        clock=lambda: 1234.5,
    )
    return events, committer


def run(steps: list[list[int]], finish: Finish, **asked: Any) -> list[dict[str, Any]]:
    """The events of a reply whose steps made these tokens."""
    events, committer = events_of(**asked)
    out = events.begin()
    for tokens in steps:
        logprobs = tuple(TokenLogprob(token, -1.0, ((token, -1.0), (5, float("-inf")))) for token in tokens)
        delta = Delta(request_id="", tokens=tuple(tokens), logprobs=logprobs if "top_logprobs" in asked else None)
        out += events.piece(committer.push(delta))
    if not events.ended:
        out += events.piece(committer.push(Delta(request_id="", tokens=(), finish=finish)))
    assert events.body() == out[-1]["response"]
    check_stream(out)
    return out


@pytest.mark.parametrize("asked", [{}, {"top_logprobs": 1}])
def test_a_reply_of_all_kinds_is_the_same_however_it_is_cut(asked: dict[str, Any]) -> None:
    ids = [*TOKENIZER.encode(MIXED), 2]
    bodies = []
    random_cuts = random.Random(3)
    for _ in range(20):
        cuts = sorted(random_cuts.sample(range(1, len(ids)), random_cuts.randrange(0, 12)))
        steps = [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]
        bodies.append(run(steps, "stop", **asked)[-1]["response"] | {"metrics": None})
    bodies.append(run([[token] for token in ids], "stop", **asked)[-1]["response"] | {"metrics": None})
    assert all(body == bodies[0] for body in bodies)
    assert [item["type"] for item in bodies[0]["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "message",
    ]
    thought, words, first, second, end = bodies[0]["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "let me see"}]
    assert words["content"][0]["text"] == "I look: "
    assert [call["arguments"] for call in (first, second)] == ['{"a":1}', '{"b":22}']
    assert [call["call_id"] for call in (first, second)] == ["call_0", "call_1"]
    assert end["content"][0]["text"] == "done ďábel"
    assert all(item["status"] == "completed" for item in bodies[0]["output"])


def test_the_order_of_events_of_each_kind() -> None:
    assert order_of(run([TOKENIZER.encode("^hm^{}")], "stop")) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_one_delta_for_what_one_step_adds_to_an_item() -> None:
    out = run([TOKENIZER.encode("Hello you"), TOKENIZER.encode(" all")], "stop")
    assert [event["delta"] for event in out if "delta" in event] == ["Hello you", " all"]


@pytest.mark.parametrize(
    ("finish", "status", "details"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("abort", "failed", None),
        ("error", "failed", None),
    ],
)
def test_endings(finish: Finish, status: str, details: Any) -> None:
    last = run([TOKENIZER.encode("ab")], finish)[-1]
    response = last["response"]
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert response["output"][-1]["status"] == ("completed" if status == "completed" else "incomplete")
    assert response["completed_at"] == (1234 if status == "completed" else None)
    assert (response["error"] is None) == (status != "failed")
    assert response["usage"]["input_tokens"] == 7


def test_a_reply_without_a_word_is_a_message_all_the_same() -> None:
    (message,) = run([], "stop")[-1]["response"]["output"]
    assert (message["type"], message["content"][0]["text"]) == ("message", "")
    assert run([], "error")[-1]["response"]["output"] == []


def test_logprobs_of_all_tokens_with_the_text_they_became() -> None:
    ids = TOKENIZER.encode("Hello ďábel")
    out = run([[token] for token in ids], "length", top_logprobs=1)
    (part,) = out[-1]["response"]["output"][0]["content"]
    assert [entry["token"] for entry in part["logprobs"]] == [TOKENIZER.token_text(token) for token in ids]
    assert part["logprobs"][0]["top_logprobs"][1]["logprob"] == -9999.0
    assert out[-1]["response"]["top_logprobs"] == 1


def test_logprobs_are_those_of_the_message_alone() -> None:
    """Neither a thought's nor a call's, but that of the token that ends it: in one step or in one for each token."""
    ids = [*TOKENIZER.encode("^hm^ab{1}cd"), 2]
    for steps in ([ids], [[token] for token in ids]):
        output = run(steps, "stop", top_logprobs=1)[-1]["response"]["output"]
        told = [[entry["token"] for entry in item["content"][0]["logprobs"]] for item in output if "role" in item]
        assert told == [["a", "b"], ["c", "d", TOKENIZER.token_text(2)]]


def test_a_call_that_the_model_breaks_off_is_incomplete_and_forgotten() -> None:
    """However the reply goes on: nothing can be called with half an object."""
    events, committer = events_of()
    out = events.begin()
    ids = tuple(TOKENIZER.encode('{"a":}{}so'))
    out += events.piece(committer.push(Delta(request_id="", tokens=(*ids, 2))))
    check_stream(out)
    assert [item["status"] for item in events.body()["output"]] == ["incomplete", "completed", "completed"]
    assert events.calls == (events.calls[-1],)
    assert events.calls[-1].body()["arguments"] == "{}"
    assert [type(item) for item in events.items] == [Call, Message]


def test_what_the_conversation_remembers() -> None:
    events, committer = events_of()
    events.begin()
    events.piece(committer.push(Delta(request_id="", tokens=tuple(TOKENIZER.encode("^hm^Yes{}{")))))
    events.cancel()
    text, call = events.items
    assert isinstance(text, Message)
    assert isinstance(call, Call)
    assert (text.role, text.text, call.arguments) == ("assistant", "Yes", "{}")
    events, committer = events_of()
    events.begin()
    events.cancel()
    assert events.items == ()


def test_nothing_follows_the_end() -> None:
    events, _ = events_of()
    events.begin()
    assert events.cancel()[-1]["type"] == "response.incomplete"
    assert events.ended
    for late in (events.cancel(), events.steer(), events.fail("x"), events.piece(Piece(parts=(Words("x"),)))):
        assert late == []


def test_figures_ride_on_text_and_add_up() -> None:
    events, committer = events_of(speculation={"telemetry": True})
    out = events.begin()
    for text in ("^a", "b^c", "{d}"):
        ids = tuple(TOKENIZER.encode(text))
        out += events.piece(committer.push(Delta(request_id="", tokens=ids, drafted=3, accepted=len(ids) - 1)))
    out += events.piece(committer.push(Delta(request_id="", tokens=(), finish="stop")))
    figures = [event["x_spec"] for event in out if "x_spec" in event]
    assert sum(figure["emitted"] for figure in figures) == committer.usage.completion_tokens
    assert sum(figure["drafted"] for figure in figures) == 9
    assert output_text(events.body()) == "c"


def test_the_request_is_repeated() -> None:
    events, _ = events_of(
        instructions="Be kind.", max_output_tokens=9, metadata={"a": "b"}, truncation="auto", user="me", store=False
    )
    body = events.body()
    assert (body["instructions"], body["max_output_tokens"], body["metadata"]) == ("Be kind.", 9, {"a": "b"})
    assert (body["truncation"], body["user"], body["store"]) == ("auto", "me", False)
    assert (body["tools"], body["tool_choice"], body["parallel_tool_calls"]) == ([], "auto", True)
    assert (body["usage"], body["status"], body["seed"]) == (None, "in_progress", 5)
