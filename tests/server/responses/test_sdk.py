"""Responses as OpenAI's own client uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest
from service import ENDLESS, MODEL_ID, LiveServer, wait_until_idle

from paceline.server.service import Service


@pytest.fixture
def sdk(live: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk:
        yield sdk


def test_sdk_create_and_stream_agree(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": MODEL_ID, "input": "hi there", "max_output_tokens": 12, "extra_body": ENDLESS}
    whole = sdk.responses.create(**asked, temperature=0)
    with sdk.responses.stream(**asked, temperature=0) as stream:
        events = list(stream)
    final = events[-1].response  # type: ignore[union-attr]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert whole.output_text == final.output_text == "".join(deltas) != ""
    assert whole.usage is not None
    assert final.usage is not None
    assert whole.usage.output_tokens == final.usage.output_tokens == 12
    assert whole.usage.total_tokens == final.usage.total_tokens
    assert (whole.status, whole.model, whole.object) == ("incomplete", MODEL_ID, "response")
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert whole._request_id is not None


def test_sdk_goes_on_from_a_stored_response(sdk: openai.OpenAI) -> None:
    first = sdk.responses.create(model="default", input="hi", max_output_tokens=4, instructions="Be kind.")
    assert sdk.responses.retrieve(first.id) == first
    second = sdk.responses.create(model="default", input="more", previous_response_id=first.id, max_output_tokens=4)
    assert second.previous_response_id == first.id
    alone = sdk.responses.create(
        model="default",
        input=[
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": first.output_text},
            {"role": "user", "content": "more"},
        ],
        max_output_tokens=4,
    )
    assert second.usage is not None
    assert alone.usage is not None
    assert second.usage.input_tokens == alone.usage.input_tokens
    sdk.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError) as gone:
        sdk.responses.create(model="default", input="more", previous_response_id=first.id)
    assert (gone.value.code, gone.value.param) == ("previous_response_not_found", "previous_response_id")
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.delete(first.id)


def test_sdk_errors(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.responses.create(model="gpt-9", input="hi")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="maximum context length") as long:
        sdk.responses.create(model="default", input="z" * 5000, stream=True)
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "input")


def test_sdk_closing_a_stream_frees_the_engine(sdk: openai.OpenAI, service: Service) -> None:
    stream = sdk.responses.create(model="default", input="hi", stream=True, extra_body=ENDLESS)
    next(iter(stream))
    stream.close()
    wait_until_idle(service)


def test_sdk_parse(sdk: openai.OpenAI) -> None:
    class Thing(pydantic.BaseModel):
        up: bool

    parsed = sdk.responses.parse(model="default", input="hi", text_format=Thing, max_output_tokens=60)
    assert isinstance(parsed.output_parsed, Thing)
    assert parsed.status == "completed"
