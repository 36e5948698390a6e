"""Chunks and body of one and the same reply, made of the engine's own steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chat_completions import choice_of
from part_readers import RUN, EveryKind
from service import ENDLESS
from traces import assert_traced

from paceline.server.chat_shape import ChatShape
from paceline.server.fields import Fields, JsonObject
from paceline.server.generation import Generation
from paceline.server.parameters import Parameters, read_parameters
from paceline.server.prepared import Prepared, plain_reader
from paceline.server.reply_parts import PartReader
from paceline.server.reply_writer import BodyWriter, ChunkWriter, ReplyForm
from paceline.server.service import Service
from paceline.server.stream_options import StreamOptions

PROMPT = tuple(range(10, 40)) * 2


async def written(
    service: Service,
    *,
    n: int = 1,
    prefill_only: bool = False,
    figures: bool = True,
    reader: Callable[[int], PartReader] = EveryKind,
    **parameters: Any,
) -> tuple[list[JsonObject], JsonObject]:
    options = StreamOptions(stream=True, include_usage=True, continuous_usage=True)
    form = ReplyForm(service, "chatcmpl", ChatShape(service.tokenizer), options, figures=figures)
    asked = read_parameters(Fields(parameters), service.limits, Parameters(max_tokens=40, seed=9))
    async with Generation(
        service,
        id=form.id,
        prepared=Prepared(PROMPT, reader=reader),
        parameters=replace(asked, max_tokens=parameters.get("max_tokens", 40)),
        protocol="test",
        started=0.0,
        n=n,
        prefill_only=prefill_only,
    ) as generation:
        chunks, body = ChunkWriter(generation, form), BodyWriter(generation, form)
        events = []
        while (step := await generation.next()) is not None:
            events += chunks.step(step)
            body.step(step)
        return [*events, *chunks.end()], body.body()


REQUESTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0},
    {"temperature": 0, "speculation": {"mode": "suffix"}},
    {"logprobs": True, "top_logprobs": 2},
    {"n": 3, "logprobs": True, "figures": False},
    {"n": 2, "temperature": 0.7, "stop": ["e", "a", "i"]},
    {"max_tokens": 1},
]


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
async def test_the_chunks_add_up_to_the_body(service: Service, asked: dict[str, Any]) -> None:
    events, body = await written(service, **asked)
    choices = [choice_of(events, index) for index in range(asked.get("n", 1))]
    assert choices == body["choices"]
    assert [{key: event[key] for key in ("id", "model")} for event in events] == [
        {"id": body["id"], "model": body["model"]}
    ] * len(events)
    assert (events[-1]["choices"], events[-1]["usage"], events[-1]["seed"]) == ([], body["usage"], body["seed"])


async def test_figures_of_a_step_ride_on_one_chunk(service: Service) -> None:
    """Each token is one character or more, so that a step often ends one part and begins another."""
    events, body = await written(service, n=2, logprobs=True, speculation={"mode": "suffix"})
    for index in range(2):
        own = [event for event in events if event["choices"] and event["choices"][0]["index"] == index]
        told = [event["choices"][0]["logprobs"] for event in own]
        assert sum(len(entry["content"]) for entry in told if entry) == 40
        figures = [event["x_spec"] for event in own if "x_spec" in event]
        assert sum(figure["emitted"] for figure in figures) == 40
        assert all(figure["emitted"] for figure in figures)
        assert len(own) > len(figures) + 2
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == body["usage"]["completion_tokens"] == 80


async def test_with_a_trace_every_chunk_of_words_tells_what_it_is_made_of(service: Service) -> None:
    """And no other; the steps ride on the first of theirs."""
    events, body = await written(service, speculation={"mode": "suffix", "trace": True})
    told = [event for event in events if event["choices"]]
    words = [event for event in told if event["choices"][0]["delta"].get("content")]
    assert words
    deltas = [{"delta": _content(event), "x_spec": event["x_spec"]} for event in told if "x_spec" in event]
    assert_traced(deltas, body["usage"]["completion_tokens"])
    for event in told:
        choice = event["choices"][0]
        whole = event in words or (choice["finish_reason"] is not None and "x_spec" in event)
        assert ("spans" in event.get("x_spec", {})) == whole


def _content(event: JsonObject) -> str:
    return str(event["choices"][0]["delta"].get("content") or "")


async def test_figures_of_text_that_was_held_back_for_nothing_come_with_the_finish(service: Service) -> None:
    """All of the text is the stop string, so there is no chunk of text for them to ride on."""
    stop = await whole_text(service)
    events, body = await written(service, stop=stop[:RUN])
    opening, finish, usage = events
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert finish["x_spec"]["emitted"] == usage["usage"]["completion_tokens"] > 0
    assert body["choices"][0]["message"]["content"] == ""


async def test_a_reply_that_is_cut_off_ends_with_length_whatever_it_called(service: Service) -> None:
    for tokens in (20, 25, 30, 40):
        events, body = await written(service, max_tokens=tokens, **ENDLESS)
        (choice,) = body["choices"]
        assert choice["message"]["tool_calls"][0]["function"]["name"] == "look_up", tokens
        assert choice["finish_reason"] == events[-2]["choices"][0]["finish_reason"] == "length"


async def test_a_reply_that_stops_after_a_whole_call_ends_with_tool_calls(service: Service) -> None:
    text, end = await whole_text(service), 3 * RUN
    stop = next(text[end : end + size] for size in range(1, 9) if text.find(text[end : end + size]) == end)
    events, body = await written(service, stop=stop, **ENDLESS)
    (choice,) = body["choices"]
    assert choice["finish_reason"] == events[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert len(choice["message"]["tool_calls"]) == 1


async def whole_text(service: Service) -> str:
    """Of the same reply, read as words alone."""
    _, body = await written(service, reader=plain_reader, **ENDLESS)
    text: str = body["choices"][0]["message"]["content"]
    return text


async def test_what_was_only_read_in_has_usage_alone(service: Service) -> None:
    events, body = await written(service, prefill_only=True)
    assert body["choices"] == []
    (only,) = events
    assert (only["choices"], only["usage"]) == ([], body["usage"])
    assert body["usage"]["completion_tokens"] == 0
