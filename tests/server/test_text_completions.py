"""Text completions as clients see them."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from chat_completions import events_of
from service import LiveServer, client_of, running_service, wait_until_idle
from starlette.testclient import TestClient

from paceline.server.service import Service

URL = "/v1/completions"
ASKED: dict[str, Any] = {"prompt": "the cat sat on the mat", "max_tokens": 12, "seed": 1}


def body_of(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = client.post(URL, json={**ASKED, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def joined(events: list[dict[str, Any]], index: int) -> dict[str, Any]:
    own = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    assert [choice["finish_reason"] for choice in own[:-1]] == [None] * (len(own) - 1)
    assert (own[-1]["text"], own[-1]["logprobs"]) == ("", None)
    told = [choice["logprobs"] for choice in own if choice["logprobs"]]
    logprobs = {key: [entry for each in told for entry in each[key]] for key in told[0]} if told else None
    return {
        "index": index,
        "text": "".join(choice["text"] for choice in own),
        "logprobs": logprobs,
        "finish_reason": own[-1]["finish_reason"],
    }


REQUESTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0, "stop": ["e", "a"]},
    {"logprobs": 3},
    {"logprobs": 0, "n": 2},
    {"prompt": ["one", "two and more", "one"], "n": 2},
    {"prompt": [[10, 11, 12], [20]], "temperature": 0.5},
    {"prompt": "the cat sat on the mat; " * 6, "temperature": 0, "max_tokens": 40},
]


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_chunks_add_up_to_the_body_with_speculation_and_without(client: TestClient, asked: dict[str, Any]) -> None:
    plain = body_of(client, **asked, speculation={"mode": "none"})
    assert (plain["object"], plain["id"][:5]) == ("text_completion", "cmpl-")
    for mode in ("none", "suffix"):
        more = {"speculation": {"mode": mode}, "stream": True, "stream_options": {"include_usage": True}}
        events = events_of(client.post(URL, json={**ASKED, **asked, **more}))
        choices = [joined(events, index) for index in range(len(plain["choices"]))]
        for ours, theirs in zip(choices, plain["choices"], strict=True):
            if "logprobs" in asked:  # the last bits may differ
                for key in ("token_logprobs", "top_logprobs"):
                    ours["logprobs"].pop(key)
                    theirs["logprobs"].pop(key, None)
        assert choices == plain["choices"]
        counts = ("prompt_tokens", "completion_tokens", "total_tokens")
        assert [events[-1]["usage"][key] for key in counts] == [plain["usage"][key] for key in counts]


def test_each_prompt_is_answered_as_it_is_alone(client: TestClient) -> None:
    prompts = ["once upon a time", "12 + 30 =", [10, 20, 30]]
    together = body_of(client, prompt=prompts, n=2)
    assert [choice["index"] for choice in together["choices"]] == list(range(6))
    alone = [body_of(client, prompt=prompt, n=2) for prompt in prompts]
    assert [choice["text"] for choice in together["choices"]] == [
        choice["text"] for body in alone for choice in body["choices"]
    ]
    for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert together["usage"][key] == sum(body["usage"][key] for body in alone)


def test_a_text_and_its_tokens_are_one_prompt(client: TestClient, service: Service) -> None:
    """And the names of control tokens are control tokens: whoever sends a raw prompt wrote the template."""
    text = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    ids = service.tokenizer.encode_document(text)
    assert len(ids) < len(text) / 2
    assert body_of(client, prompt=text)["choices"] == body_of(client, prompt=ids)["choices"]
    assert body_of(client, prompt=text)["usage"]["prompt_tokens"] == len(ids)


def test_sixteen_tokens_unless_asked(client: TestClient) -> None:
    body = client.post(URL, json={"prompt": "a", "logit_bias": {"2": -100}}).json()
    assert (body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]) == (16, "length")


@pytest.mark.parametrize(
    ("more", "status", "code", "param"),
    [
        ({"prompt": None}, 400, None, "prompt"),
        ({"prompt": [1, 10**6]}, 400, None, "prompt[1]"),
        ({"prompt": ["a"] * 200}, 400, None, "prompt"),
        ({"prompt": "z" * 300}, 400, "context_length_exceeded", "prompt"),
        ({"prompt": ["a", [10] * 256]}, 400, "context_length_exceeded", "prompt"),
        ({"prompt": "z" * 100_000}, 400, "context_length_exceeded", "prompt"),
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"echo": True}, 400, "unsupported", "echo"),
        ({"best_of": 3}, 400, "unsupported", "best_of"),
        ({"temperature": 1000}, 400, None, "temperature"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals(
    client: TestClient, stream: bool, more: dict[str, Any], status: int, code: str | None, param: str
) -> None:
    answer = client.post(URL, json={**ASKED, "stream": stream, **more})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"].endswith(".")


def test_all_prompts_or_none(tmp_path: Any) -> None:
    with running_service(tmp_path, max_batch=1, queue_limit=2) as service, client_of(service) as client:
        answer = client.post(URL, json={**ASKED, "prompt": ["a"] * 9})
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "overloaded")
        wait_until_idle(service)
        body_of(client, prompt=["a"] * 2)


def test_the_stock_sdk(live: LiveServer) -> None:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk:
        whole = sdk.completions.create(model="default", **ASKED, logprobs=2)
        stream = list(sdk.completions.create(model="default", **ASKED, stream=True))
        assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text
        assert whole.choices[0].logprobs is not None
        assert whole.choices[0].logprobs.top_logprobs is not None
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            sdk.completions.create(model="default", prompt="z" * 5000)
        with pytest.raises(openai.BadRequestError, match="Embeddings are not made here") as refused:
            sdk.embeddings.create(model="default", input="a text")
        assert refused.value.code == "unsupported"
