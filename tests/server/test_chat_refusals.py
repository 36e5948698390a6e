"""What a client of chat completions can get wrong; every refusal comes before the first byte of an answer."""

from __future__ import annotations

from typing import Any

import pytest
from chat_completions import post
from service import client_of, running_service, wait_until_idle
from starlette.testclient import TestClient


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"messages": []}, 400, None, "messages"),
        ({"max_tokens": 0}, 400, None, "max_tokens"),
        ({"max_tokens": -1}, 400, None, "max_tokens"),
        ({"n": 0}, 400, None, "n"),
        ({"n": 1000}, 400, None, "n"),
        ({"temperature": "hot"}, 400, None, "temperature"),
        ({"stop": ["x"] * 10_000}, 400, None, "stop"),
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"messages": [{"role": "user", "content": "z" * 300}]}, 400, "context_length_exceeded", "messages"),
        ({"messages": [{"role": "user", "content": "z" * 100_000}]}, 400, "context_length_exceeded", "messages"),
        ({"functions": [{"name": "f"}]}, 400, "unsupported", "functions"),
        ({"audio": {"voice": "alloy"}}, 400, "unsupported", "audio"),
        ({"modalities": ["text", "audio"]}, 400, "unsupported", "modalities"),
        ({"priority": "urgent"}, 400, None, "priority"),
        ({"logprobs": True, "top_logprobs": 21}, 400, None, "top_logprobs"),
        ({"logit_bias": {"1": 101}}, 400, None, "logit_bias"),
        ({"stream_options": {"include_usage": "yes"}}, 400, None, "stream_options.include_usage"),
        ({"messages": [{"role": "function", "content": "1"}]}, 400, None, "messages[0].role"),
        ({"speculation": {"mode": "medusa"}}, 400, "unknown_speculator", "speculation.mode"),
    ],
)
def test_refusals(
    client: TestClient, stream: bool, body: dict[str, Any], status: int, code: str | None, param: str
) -> None:
    answer = post(client, stream=stream, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"].endswith(".")
    assert answer.headers["x-request-id"].startswith("req_")
    assert post(client).status_code == 200


def test_a_template_that_refuses_is_a_400_in_its_own_words(tmp_path: Any) -> None:
    from paceline.server.chat_template import ChatTemplate

    with running_service(tmp_path) as service, client_of(service) as client:
        source = "{{ raise_exception('Roles must alternate.') }}"
        service.template = ChatTemplate(source, None, None, service.tokenizer)
        answer = post(client)
        assert answer.status_code == 400
        assert "Roles must alternate." in answer.json()["error"]["message"]


def test_a_full_queue_is_a_429(tmp_path: Any) -> None:
    with running_service(tmp_path, max_batch=1, queue_limit=2) as service, client_of(service) as client:
        answer = post(client, n=16, max_tokens=100)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "overloaded")
        assert answer.headers["retry-after"]
        wait_until_idle(service)
        assert post(client).status_code == 200
