from __future__ import annotations

from typing import Any

import pytest
from templates import TEMPLATES

from paceline.engine.errors import RequestError
from paceline.server.fields import Fields
from paceline.server.text_decoder import Shown
from paceline.server.thinking import MODELS_OWN, Tags, Thinking, read_thinking, tags_of


def read(body: dict[str, Any], base: Thinking = MODELS_OWN) -> Thinking:
    return read_thinking(Fields(body), base)


def test_tags_are_told_from_the_template() -> None:
    assert tags_of(TEMPLATES["qwen3"], Shown({})) == Tags("<think>", "</think>", "<think>")
    assert tags_of(TEMPLATES["smollm2"], Shown({})) is None
    shown = Shown({"<think>": 9, "</think>": 10})
    special = tags_of(TEMPLATES["deepseek"], shown)
    assert special is not None
    assert set(shown.characters.values()) == {special.open, special.close}
    assert special.name == "<think>"


@pytest.mark.parametrize(
    ("body", "thinking", "variables"),
    [
        ({}, MODELS_OWN, {}),
        ({"reasoning_effort": None, "reasoning": None, "chat_template_kwargs": None}, MODELS_OWN, {}),
        (
            {"reasoning_effort": "low"},
            Thinking(True, "low"),
            {"enable_thinking": True, "thinking": True, "reasoning_effort": "low"},
        ),
        ({"reasoning": {"effort": "none"}}, Thinking(False), {"enable_thinking": False, "thinking": False}),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "other": [1]}},
            Thinking(False),
            {"enable_thinking": False, "thinking": False},
        ),
        ({"chat_template_kwargs": {"thinking": True}}, Thinking(True), {"enable_thinking": True, "thinking": True}),
    ],
)
def test_what_a_client_may_ask(body: dict[str, Any], thinking: Thinking, variables: dict[str, Any]) -> None:
    assert read(body) == thinking
    assert thinking.variables() == variables


def test_what_was_set_before_stays() -> None:
    assert read({}, Thinking(False, "high")) == Thinking(False, "high")
    assert read({"chat_template_kwargs": {"enable_thinking": True}}, Thinking(False, "high")) == Thinking(True, "high")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"reasoning_effort": 3}, "reasoning_effort"),
        ({"reasoning": "low"}, "reasoning"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "chat_template_kwargs.enable_thinking"),
    ],
)
def test_what_is_no_answer_is_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(body)
    assert caught.value.param == param
    assert str(caught.value).startswith(param)
