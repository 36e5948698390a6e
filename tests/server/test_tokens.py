from __future__ import annotations

import asyncio
from typing import Any

import pytest
from chat_completions import HI, post
from service import client_of
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service


def tokenize(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/tokenize", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert (told["count"], told["max_model_len"]) == (len(told["tokens"]), 256)
    return told


@pytest.mark.parametrize("text", ["", "hello there", "ďábel 😀", "<|im_start|>user\nhi<|im_end|>", "z" * 5000])
def test_there_and_back(client: TestClient, text: str) -> None:
    """Longer than the context too: how long a text is, is what one asks."""
    told = tokenize(client, prompt=text, return_token_strs=True)
    assert client.post("/detokenize", json={"tokens": told["tokens"]}).json() == {"prompt": text}
    assert len(told["token_strs"]) == told["count"]
    assert tokenize(client, prompt=text)["token_strs"] is None


def test_a_conversation_counts_what_a_reply_to_it_counts(client: TestClient) -> None:
    told = tokenize(client, messages=HI, model="default")
    assert told["count"] == post(client).json()["usage"]["prompt_tokens"]
    shorter = tokenize(client, messages=HI, add_generation_prompt=False)["tokens"]
    assert told["tokens"][: len(shorter)] == shorter
    assert len(shorter) < told["count"]
    assert "hi there" in client.post("/detokenize", json={"tokens": shorter}).json()["prompt"]


def test_the_name_of_a_special_token_that_a_user_types_stays_text(client: TestClient, service: Service) -> None:
    typed = tokenize(client, messages=[{"role": "user", "content": "<|im_end|>"}])["tokens"]
    plain = tokenize(client, messages=[{"role": "user", "content": ""}])["tokens"]
    end = service.tokenizer.special_tokens["<|im_end|>"]
    assert typed.count(end) == plain.count(end)


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/tokenize", {}, 400, "prompt"),
        ("/tokenize", {"prompt": None}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": HI}, 400, "prompt"),
        ("/tokenize", {"prompt": 5}, 400, "prompt"),
        ("/tokenize", {"messages": []}, 400, "messages"),
        ("/tokenize", {"messages": [{"role": "robot"}]}, 400, "messages[0].role"),
        ("/tokenize", {"prompt": "a", "model": "other"}, 404, "model"),
        ("/tokenize", {"prompt": "a", "add_special_tokens": 1}, 400, "add_special_tokens"),
        ("/tokenize", {"prompt": "a", "return_token_strs": 1}, 400, "return_token_strs"),
        ("/detokenize", {}, 400, "tokens"),
        ("/detokenize", {"tokens": "a"}, 400, "tokens"),
        ("/detokenize", {"tokens": [1, -1]}, 400, "tokens[1]"),
        ("/detokenize", {"tokens": [1, 10**9]}, 400, "tokens[1]"),
        ("/detokenize", {"tokens": [True]}, 400, "tokens[0]"),
    ],
)
def test_refusals(client: TestClient, path: str, body: dict[str, Any], status: int, param: str) -> None:
    answer = client.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param)
    assert error["message"].endswith(".")


def test_a_key_is_asked_for_where_one_is_set(service: Service) -> None:
    with client_of(service, Settings(api_keys=("right",))) as client:
        for path, body in (("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [10]})):
            assert client.post(path, json=body).status_code == 401
            assert client.post(path, json=body, headers={"authorization": "Bearer right"}).status_code == 200


def test_tools_are_counted_as_they_are_rendered(client: TestClient) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    assert tokenize(client, messages=HI, tools=tools)["count"] > tokenize(client, messages=HI)["count"] + 10
    assert tokenize(client, messages=HI, tools=tools, tool_choice="none") == tokenize(client, messages=HI)


async def test_a_long_text_does_not_hold_up_the_event_loop(service: Service) -> None:
    """Others get their turn while it is read."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    ids = await service.tokens_of_text("q" * 200_000, document=True)
    assert await service.text_of(ids) == "q" * 200_000
    assert len(await service.names_of(ids)) == len(ids)
    task.cancel()
    assert turns > 3
