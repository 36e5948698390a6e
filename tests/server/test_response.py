from __future__ import annotations

from realtime_session import HandReply
from token_replies import TOKENIZER, letters
from traces import chain_trace
from vocabularies import byte_level_tokenizer

from paceline.engine.request import Delta
from paceline.server.committer import Committer, Piece
from paceline.server.parameters import Parameters
from paceline.server.reply_parts import CallArguments, CallBegin, Words
from paceline.server.response import Response
from paceline.server.response_output import ResponseOutput
from paceline.server.step_trace import step_body
from paceline.server.stop_strings import StopStrings


def response(max_tokens: int | None = None) -> Response:
    reply = HandReply(Committer(byte_level_tokenizer(), stops=StopStrings(()), stop_ids=(), prompt_tokens=7))
    return Response(
        id="resp_1",
        output=ResponseOutput("resp_1", lambda prefix: f"{prefix}_1", conversation=None, after=None),
        conversation_id=None,
        parameters=Parameters(max_tokens=max_tokens),
        metadata={"a": "b"},
        client_event=None,
        reply=reply,
    )


def test_the_event_before_the_text() -> None:
    (event,) = response().opened()
    assert event["type"] == "response.created"
    assert event["response"]["status"] == "in_progress"
    assert event["response"]["usage"] is None
    assert event["response"]["metadata"] == {"a": "b"}


def test_tokens_without_text_are_counted_with_the_next_text() -> None:
    r = response()
    assert r.delta(Piece(drafted=2, accepted=1, tokens=(0, 1))) == []
    event = r.delta(Piece(text="é", parts=(Words("é"),), drafted=1, tokens=(0,)))[-1]
    assert {key: event["x_spec"][key] for key in ("drafted", "accepted", "emitted")} == {
        "drafted": 3,
        "accepted": 1,
        "emitted": 3,
    }
    assert (event["x_seq"], event["delta"]) == (1, "é")


def test_the_deltas_of_one_step_share_its_tokens() -> None:
    r = response()
    parts = (Words("a"), CallBegin(0, "c", "f"), CallArguments(0, "{}"))
    deltas = [event for event in r.delta(Piece(parts=parts, tokens=(1, 2, 3))) if "delta" in event]
    assert [(event["x_seq"], event["x_spec"]["emitted"]) for event in deltas] == [(1, 3), (2, 0)]


def test_each_delta_of_a_traced_step_tells_what_its_own_text_is_made_of() -> None:
    tokens = letters("abc")
    trace = chain_trace(tokens, ["suffix", "heads"])
    step = step_body(trace, 1.0, "best", TOKENIZER)
    parts = (Words("ab", spans=((1, "suffix"), (1, "heads"))), CallBegin(0, "c", "f"), CallArguments(0, "{}"))
    r = response()
    deltas = [e for e in r.delta(Piece(parts=parts, tokens=tuple(tokens), step=step)) if "delta" in e]
    assert [event["x_spec"]["steps"] for event in deltas] == [[step], []]
    assert [event["x_spec"].get("spans") for event in deltas] == [[[1, "suffix"], [1, "heads"]], None]
    (end,) = [e for e in r.delta(Piece(tokens=(2,), finish="stop", step=step)) if "delta" in e]
    assert (end["delta"], end["x_spec"]["steps"], end["x_spec"]["spans"]) == ("", [step], [])


def test_a_last_token_without_text_is_not_lost() -> None:
    """The end token counts as generated: the sums still equal the usage."""
    r = response()
    event = r.delta(Piece(tokens=(2,), finish="stop"))[-1]
    assert (event["delta"], event["x_spec"]["emitted"]) == ("", 1)
    assert r.delta(Piece(finish="stop")) == []


def test_the_end_carries_everything() -> None:
    r = response(max_tokens=9)
    assert r.reply is not None
    piece = r.reply.committer.push(Delta(request_id="x", tokens=(40, 41), finish="length", cached_tokens=4))
    r.delta(piece)
    events = r.ended("incomplete", {"reason": "max_output_tokens"})
    assert [event["type"] for event in events] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert events[0]["text"] == events[1]["part"]["text"] == piece.text
    body = events[-1]["response"]
    assert body["status"] == "incomplete"
    assert body["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert body["output"][0]["content"][0]["text"] == piece.text
    assert body["usage"]["input_tokens"] == 7
    assert body["usage"]["output_tokens"] == 2
    assert body["usage"]["total_tokens"] == 9
    assert body["usage"]["input_token_details"]["cached_tokens"] == 4
    assert (body["max_output_tokens"], body["seed"]) == (9, 5)
    assert body["metrics"]["time_to_first_token_ms"] == 1.0
