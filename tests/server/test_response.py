from __future__ import annotations

from realtime_session import HandReply
from vocabularies import byte_level_tokenizer

from paceline.engine.request import Delta
from paceline.server.committer import Committer, Piece
from paceline.server.conversation import Item
from paceline.server.parameters import Parameters
from paceline.server.response import Response
from paceline.server.stop_strings import StopStrings


def response(conversation_id: str | None = "conv_1", max_tokens: int | None = None) -> Response:
    reply = HandReply(Committer(byte_level_tokenizer(), stops=StopStrings(()), stop_ids=(), prompt_tokens=7))
    return Response(
        id="resp_1",
        item=Item("item_1", "assistant", "", "in_progress"),
        conversation_id=conversation_id,
        parameters=Parameters(max_tokens=max_tokens),
        metadata={"a": "b"},
        client_event=None,
        after=None,
        reply=reply,
    )


def test_the_events_before_the_text() -> None:
    opened = response().opened("item_0")
    assert [event["type"] for event in opened] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
    ]
    assert opened[0]["response"]["status"] == "in_progress"
    assert opened[0]["response"]["usage"] is None
    assert opened[0]["response"]["metadata"] == {"a": "b"}
    assert opened[1]["item"]["content"] == []
    assert opened[2]["previous_item_id"] == "item_0"


def test_beside_the_conversation_no_item_is_announced_in_it() -> None:
    beside = response(conversation_id=None)
    events = beside.opened(None) + beside.ended("completed", None, None)
    assert not any(event["type"].startswith("conversation.") for event in events)
    assert events[-1]["response"]["conversation_id"] is None


def test_tokens_without_text_are_counted_with_the_next_text() -> None:
    r = response()
    assert r.delta(Piece(drafted=2, accepted=1, tokens=(0, 1))) == []
    (event,) = r.delta(Piece(text="é", drafted=1, tokens=(0,)))
    assert {key: event["x_spec"][key] for key in ("drafted", "accepted", "emitted")} == {
        "drafted": 3,
        "accepted": 1,
        "emitted": 3,
    }
    assert (event["x_seq"], event["delta"]) == (1, "é")


def test_a_last_token_without_text_is_not_lost() -> None:
    """The end token counts as generated: the sums still equal the usage."""
    r = response()
    (event,) = r.delta(Piece(tokens=(2,), finish="stop"))
    assert (event["delta"], event["x_spec"]["emitted"]) == ("", 1)
    assert r.delta(Piece(finish="stop")) == []


def test_the_end_carries_everything() -> None:
    r = response(max_tokens=9)
    assert r.reply is not None
    piece = r.reply.committer.push(Delta(request_id="x", tokens=(40, 41), finish="length", cached_tokens=4))
    r.delta(piece)
    events = r.ended("incomplete", {"reason": "max_output_tokens"}, "item_0")
    assert [event["type"] for event in events] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
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
