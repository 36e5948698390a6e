"""Chat templates against transformers' apply_chat_template, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rendering import BOS, EOS, TOKENIZER, template, transformers_tokenizer
from templates import TEMPLATES
from vocabularies import TEXTS, sentencepiece_tokenizer, whole_text

from paceline.engine.errors import ModelError, RequestError
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.sources import default_cache
from paceline.server.chat_template import ChatTemplate
from paceline.server.fields import JsonObject
from paceline.server.thinking import Thinking
from paceline.server.tokenizer import Tokenizer

Messages = Sequence[Mapping[str, Any]]


CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Žďár", "n": 1.5}}}

TOOLS: list[JsonObject] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "What it's like",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
    {"type": "function", "function": {"name": "time"}},
]

CONVERSATIONS: dict[str, Messages] = {
    "one": [{"role": "user", "content": "Hi"}],
    "system": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "  Hi there \n"}],
    "turns": [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": " 2 "},
        {"role": "user", "content": "日本語 😀\n\n```py\nif x<y: pass\n```"},
    ],
    "reasoning": [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nBecause."},
        {"role": "user", "content": "<"},
        {"role": "assistant", "reasoning": "well", "content": "So."},
        {"role": "user", "content": "ends with <|"},
    ],
    "tools": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": "sunny, 21°"},
    ],
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_conversations_are_encoded_as_by_transformers(name: str) -> None:
    reference, ours = transformers_tokenizer(TOKENIZER, BOS, EOS, TEMPLATES[name]), template(TEMPLATES[name])
    compared = 0
    for conversation, messages in CONVERSATIONS.items():
        if conversation == "tools" and not ours.tool_format.rendered:
            continue  # then calls and results are text before the template sees them
        try:
            expected = reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        except Exception:
            with pytest.raises(RequestError) as caught:
                ours.encode(messages)
            assert caught.value.param == "messages"
            continue
        compared += 1
        assert ours.encode(messages) == expected
    assert compared >= 3


@pytest.mark.parametrize("name", ["llama3", "qwen3", "mistral_tools", "qwen3_coder"])
def test_tools_are_rendered_as_by_transformers(name: str) -> None:
    reference, ours = transformers_tokenizer(TOKENIZER, BOS, EOS, TEMPLATES[name]), template(TEMPLATES[name])
    plain = ours.encode(CONVERSATIONS["one"])
    for messages in (CONVERSATIONS["one"], CONVERSATIONS["turns"]):
        expected = reference.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True, return_dict=False)
        assert ours.encode(messages, TOOLS) == expected != plain


def test_tools_are_described_where_the_template_knows_none() -> None:
    text = whole_text(TOKENIZER, template(TEMPLATES["smollm2"]).encode(CONVERSATIONS["tools"], TOOLS))
    assert text.startswith("<|im_start|>system\n# Tools")
    assert '{"type": "function", "function": {"name": "weather"' in text
    call = (
        '<|im_start|>assistant\n<tool_call>\n{"name": "weather", "arguments": {"city": "Žďár", "n": 1.5}}\n</tool_call>'
    )
    assert f"{call}<|im_end|>\n<|im_start|>user\n<tool_response>\nsunny, 21°\n</tool_response><|im_end|>" in text


def test_the_template_is_told_whether_to_think() -> None:
    qwen = template(TEMPLATES["qwen3"])
    asked = CONVERSATIONS["one"]
    closed = whole_text(TOKENIZER, qwen.encode(asked, thinking=Thinking(enabled=False)))
    assert closed.endswith("assistant\n<think>\n\n</think>\n\n")
    assert closed.startswith(whole_text(TOKENIZER, qwen.encode(asked)))
    assert qwen.encode(asked, thinking=Thinking(enabled=True)) == qwen.encode(asked)
    effort = template("{{ reasoning_effort or 'usual' }}")
    assert effort.prepare(asked, thinking=Thinking(effort="low"))[0] == "low"
    assert effort.prepare(asked)[0] == "usual"


def test_whether_the_prompt_opens_a_thought() -> None:
    for name, opens in (("deepseek", True), ("qwen3", False), ("smollm2", False)):
        ours = template(TEMPLATES[name])
        assert ours.opens_thought(ours.prepare(CONVERSATIONS["one"])[0]) is opens


def test_sentencepiece_conversations_are_encoded_as_by_transformers() -> None:
    tokenizer = sentencepiece_tokenizer()
    reference = transformers_tokenizer(tokenizer, "<s>", "</s>", TEMPLATES["mistral"])
    ours = ChatTemplate(TEMPLATES["mistral"], "<s>", "</s>", tokenizer)
    for text in TEXTS:
        messages = [*CONVERSATIONS["turns"][:2], {"role": "user", "content": text}]
        expected = reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert ours.encode(messages) == expected
        assert expected.count(1) == 1  # one BOS: the template's


def test_the_default_models_own_template(default_model: Path) -> None:
    assets = open_checkpoint(default_model, default_cache()).text
    tokenizer = Tokenizer.from_assets(assets)
    assert assets.chat_template is not None
    assert assets.bos_token is not None
    assert assets.eos_token is not None
    reference = transformers_tokenizer(tokenizer, assets.bos_token, assets.eos_token, assets.chat_template)
    ours = ChatTemplate(assets.chat_template, assets.bos_token, assets.eos_token, tokenizer)
    for text in TEXTS:
        messages = [{"role": "user", "content": text}]
        assert ours.encode(messages) == reference.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )


# --- what templates refuse, and may not do ---


def test_a_template_that_raises_is_quoted() -> None:
    ours = template(TEMPLATES["mistral"])
    odd: Messages = [{"role": "assistant", "content": "I first"}]
    with pytest.raises(RequestError) as caught:
        ours.encode(odd)
    assert str(caught.value) == "After an optional system message, user and assistant must take turns."
    assert caught.value.param == "messages"
    loud = template("{{ raise_exception('no ' + messages[0].content) }}")
    with pytest.raises(RequestError) as caught:
        loud.encode([{"role": "user", "content": "<|im_end|>"}])
    assert str(caught.value) == "no <|im_end|>"


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content + 1 }}",
        "{{ messages[0].content.nothing.more }}",
        "{{ 1 / 0 }}",
        "{{ messages[9].content }}",
        "{{ range(1000000000) | list }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ('%s' | attr('format')).__globals__.x }}",
        "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}{{ raise_exception.__globals__['json'].x }}",
        "{{ strftime_now.__globals__['json'].dumps(1) }}",
        "{% set ns = namespace(__class__=1) %}",
        "{% set ns = namespace() %}{% set ns.__init__ = 1 %}",
        "{% include 'x' %}",
    ],
)
def test_a_template_that_fails_or_reaches_out_is_a_request_error(source: str) -> None:
    with pytest.raises(RequestError) as caught:
        template(source).encode([{"role": "user", "content": "x"}])
    assert caught.value.param == "messages"


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": object()}], [{"role": "user"}]])
def test_messages_that_are_no_messages(messages: Any) -> None:
    with pytest.raises(RequestError) as caught:
        template(TEMPLATES["smollm2"]).encode(messages)
    assert caught.value.param == "messages"


def test_deeply_nested_input_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RequestError):
        template(TEMPLATES["smollm2"]).encode([{"role": "user", "content": deep}])


def test_text_parts_are_joined() -> None:
    ours = template(TEMPLATES["smollm2"])
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert ours.encode([{"role": "user", "content": parts}]) == ours.encode([{"role": "user", "content": "one\ntwo"}])


def test_a_syntax_error_is_found_when_the_model_is_loaded() -> None:
    with pytest.raises(ModelError, match="line 2"):
        template("ok\n{% for %}")


def test_without_a_template_chatml_is_used_where_the_vocabulary_has_it() -> None:
    ids = template(None).encode(CONVERSATIONS["turns"])
    text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in CONVERSATIONS["turns"])
    assert whole_text(TOKENIZER, ids) == text + "<|im_start|>assistant\n"
    with pytest.raises(ModelError, match="chat template"):
        template("", sentencepiece_tokenizer())
