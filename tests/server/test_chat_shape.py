from __future__ import annotations

from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from vocabularies import byte_level_tokenizer

from paceline.engine.request import TokenLogprob
from paceline.server.chat_shape import LOWEST_LOGPROB, ChatShape
from paceline.server.reply_parts import CallArguments, CallBegin, Part, Thought, Words

TOKENIZER = byte_level_tokenizer()
SHAPE = ChatShape(TOKENIZER)
HEAD: dict[str, Any] = {"id": "chatcmpl-1", "created": 5, "model": "tiny"}
CALLS: list[Part] = [
    CallBegin(0, "call_a", "add"),
    CallArguments(0, '{"x": 1}'),
    CallBegin(1, "call_b", "now"),
    CallArguments(1, "{}"),
]


def message(*parts: Part) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, **SHAPE.whole(parts)}
    body = {**HEAD, "object": SHAPE.body_kind, "choices": [choice]}
    ChatCompletion.model_validate(body, strict=True)
    whole: dict[str, Any] = choice["message"]
    return whole


def deltas(*parts: Part) -> list[dict[str, Any]]:
    out = []
    for content in (*SHAPE.opening(parts), *SHAPE.deltas(parts), SHAPE.blank(), SHAPE.nothing()):
        choice = {"index": 0, "finish_reason": None, **content}
        ChatCompletionChunk.model_validate({**HEAD, "object": SHAPE.chunk_kind, "choices": [choice]}, strict=True)
        out.append(choice["delta"])
    return out


def test_words() -> None:
    assert message(Words("hi")) == {"role": "assistant", "content": "hi", "refusal": None}
    assert message() == {"role": "assistant", "content": "", "refusal": None}
    role, text, blank, nothing = deltas(Words("hi"))
    assert (role, text) == ({"role": "assistant", "content": ""}, {"content": "hi"})
    assert (blank, nothing) == ({"content": ""}, {})


def test_thoughts_stand_beside_the_words() -> None:
    whole = message(Thought("hm"), Words("hi"))
    assert (whole["reasoning_content"], whole["content"]) == ("hm", "hi")
    assert deltas(Thought("hm"), Words("hi"))[:3] == [
        {"role": "assistant", "content": None},
        {"reasoning_content": "hm"},
        {"content": "hi"},
    ]


def test_calls_of_a_message() -> None:
    whole = message(*CALLS)
    assert whole["content"] is None
    assert whole["tool_calls"] == [
        {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}},
        {"id": "call_b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    assert message(Words("Let me see."), *CALLS)["content"] == "Let me see."


def test_one_fragment_of_a_call_in_each_chunk_with_indices_of_their_own() -> None:
    role, *fragments = deltas(*CALLS)[:5]
    assert role == {"role": "assistant", "content": None}
    assert [fragment["tool_calls"] for fragment in fragments] == [
        [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "add", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"x": 1}'}}],
        [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "now", "arguments": ""}}],
        [{"index": 1, "function": {"arguments": "{}"}}],
    ]


def test_logprobs_carry_bytes_and_stay_json() -> None:
    emoji = TOKENIZER.encode("😀")[0]
    entry = TokenLogprob(emoji, float("-inf"), ((emoji, -0.5),))
    logprobs = SHAPE.logprobs(0, [entry])
    assert logprobs is not None
    (content,) = logprobs["content"]
    assert content["logprob"] == LOWEST_LOGPROB
    assert bytes(content["bytes"]) == TOKENIZER.token_bytes(emoji)
    assert content["top_logprobs"][0]["logprob"] == -0.5
    assert SHAPE.logprobs(0, None) is None
