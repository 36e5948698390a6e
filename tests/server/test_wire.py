from __future__ import annotations

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from vocabularies import byte_level_tokenizer

from paceline.engine.request import TokenLogprob
from paceline.server.wire import LOWEST_LOGPROB, ChatWire

TOKENIZER = byte_level_tokenizer()
WIRE = ChatWire(id="chatcmpl-1", created=5, model="tiny", fingerprint="fp", tokenizer=TOKENIZER)
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_every_body_has_the_same_head() -> None:
    choice = WIRE.choice(0, "hi", "stop", None)
    bodies = [WIRE.completion([choice], USAGE, {}, 7), WIRE.chunk(0, {"content": "hi"}), WIRE.usage_chunk(USAGE)]
    for body in bodies:
        assert (body["id"], body["created"], body["model"]) == ("chatcmpl-1", 5, "tiny")
    assert [body["object"] for body in bodies] == ["chat.completion", "chat.completion.chunk", "chat.completion.chunk"]


def test_the_stock_sdk_reads_them() -> None:
    completion = ChatCompletion.model_validate(WIRE.completion([WIRE.choice(0, "hi", "stop", None)], USAGE, {}, 7))
    assert completion.choices[0].message.content == "hi"
    chunk = ChatCompletionChunk.model_validate(WIRE.chunk(1, {"content": "hi"}))
    assert (chunk.choices[0].index, chunk.choices[0].finish_reason) == (1, None)
    last = ChatCompletionChunk.model_validate(WIRE.usage_chunk(USAGE, {"seed": 7}))
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == 3


def test_logprobs_carry_bytes_and_stay_json() -> None:
    emoji = TOKENIZER.encode("😀")[0]
    entry = TokenLogprob(emoji, float("-inf"), ((emoji, -0.5),))
    logprobs = WIRE.chunk(0, {"content": ""}, logprobs=[entry])["choices"][0]["logprobs"]
    (content,) = logprobs["content"]
    assert content["logprob"] == LOWEST_LOGPROB
    assert bytes(content["bytes"]) == TOKENIZER.token_bytes(emoji)
    assert content["top_logprobs"][0]["logprob"] == -0.5
    assert WIRE.chunk(0, {})["choices"][0]["logprobs"] is None
