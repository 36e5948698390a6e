"""Replies that must have a form, as clients of chat completions see them."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chat_completions import chunks, post, text_of
from realtime_client import chatting, events_until, say
from service import LiveServer
from starlette.testclient import TestClient

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
OF_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
CODE = {"type": "regex", "regex": "[A-Z]{2}-[0-9]{3}"}
ENOUGH = 150  # tokens for any of these


def assert_person(text: str) -> None:
    value = json.loads(text)
    assert list(value) == ["name", "age"]
    assert len(value["name"]) <= 6
    assert 0 <= value["age"] <= 99


@pytest.mark.parametrize("temperature", [0, 1.3])
def test_a_reply_has_the_form_of_its_schema_and_ends_by_itself(client: TestClient, temperature: float) -> None:
    asked = {"response_format": OF_SCHEMA, "max_tokens": ENOUGH, "temperature": temperature}
    (choice,) = post(client, **asked).json()["choices"]
    assert choice["finish_reason"] == "stop"
    assert_person(choice["message"]["content"])
    assert text_of(chunks(client, **asked)) == choice["message"]["content"]
    plain = post(client, speculation={"mode": "none"}, **asked).json()["choices"][0]
    assert plain["message"] == choice["message"]


def test_logprobs_name_only_what_may_come_and_are_numbers(client: TestClient) -> None:
    (choice,) = post(client, response_format=CODE, logprobs=True, top_logprobs=20).json()["choices"]
    entries = choice["logprobs"]["content"]
    assert re.fullmatch("[A-Z]{2}-[0-9]{3}", choice["message"]["content"])
    assert [entry["logprob"] for entry in entries if entry["token"] == "-"] == [0.0]
    assert all(0 < len(entry["top_logprobs"]) <= 20 for entry in entries)
    assert all(entry["top_logprobs"][0]["logprob"] <= 0 for entry in entries)


def test_each_choice_follows_the_format_for_itself(client: TestClient) -> None:
    choices = post(client, response_format=CODE, n=4, temperature=1.5).json()["choices"]
    texts = [choice["message"]["content"] for choice in choices]
    assert len({*texts}) > 1
    assert all(re.fullmatch("[A-Z]{2}-[0-9]{3}", text) for text in texts)


def test_structured_outputs_are_another_spelling_of_it(client: TestClient) -> None:
    (choice,) = post(client, structured_outputs={"choice": ["yes", "no"]}).json()["choices"]
    assert (choice["message"]["content"] in ("yes", "no"), choice["finish_reason"]) == (True, "stop")
    both = post(client, structured_outputs={"choice": ["yes"]}, response_format=CODE)
    assert (both.status_code, both.json()["error"]["param"]) == (400, "structured_outputs")


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_that_cannot_be_followed_is_refused_before_the_first_byte(client: TestClient, stream: bool) -> None:
    answer = post(client, response_format={"type": "regex", "regex": "(a"}, stream=stream)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_grammar", "response_format.regex")
    assert "unclosed group" in error["message"]


def test_many_formats_at_once_do_not_get_in_each_others_way(live: LiveServer) -> None:
    import httpx

    def ask(i: int) -> Any:
        form: dict[str, Any] = {"type": "regex", "regex": f"{i}[a-z]{{2,4}}(-{i}){{1,3}}"} if i % 2 else OF_SCHEMA
        body = {
            "messages": [{"role": "user", "content": f"number {i % 5}"}],
            "max_tokens": ENOUGH,
            "temperature": 1.0,
            "seed": i,
            "response_format": form,
        }
        answer = httpx.post(f"{live.url}/v1/chat/completions", json=body, timeout=60)
        return answer.json()["choices"][0]

    with ThreadPoolExecutor(8) as pool:
        choices = list(pool.map(ask, range(16)))
    for i, choice in enumerate(choices):
        text = choice["message"]["content"]
        assert choice["finish_reason"] == "stop"
        if i % 2:
            assert re.fullmatch(f"{i}[a-z]{{2,4}}(-{i}){{1,3}}", text)
        else:
            assert_person(text)


def test_a_realtime_reply_has_a_form_too_and_a_bad_one_costs_the_session_nothing(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"response_format": {"type": "regex", "regex": "(a"}})
        refused = events_until(connection, "error")[-1]["error"]
        assert (refused["code"], refused["param"]) == ("invalid_grammar", "response.response_format.regex")
        say(connection, "response.create", response={"response_format": CODE})
        done = events_until(connection, "response.done")[-1]["response"]
        assert done["status"] == "completed"
        assert re.fullmatch("[A-Z]{2}-[0-9]{3}", done["output"][0]["content"][0]["text"])
