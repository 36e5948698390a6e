"""A reply is the same on every protocol and with every drafter: one table of requests, asked of all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from drafting_service import DRAFTERS
from every_protocol import PROTOCOLS, Client
from neutral import Answer, Asked
from speaking_model import SCRIPTS, Scripts

from paceline.server.parameters import derive_seed

SCRIPTED = Scripts()
BLOCK = 16
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Žďár"]}, "days": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = (
    {"name": "look_up", "description": "Weather of a city.", "parameters": CITY},
    {"name": "add", "parameters": {"type": "object"}},
)
LONG = "a line that is repeated, and some more of it; " * 12


def says(script: str, **more: Any) -> Asked:
    """The speaking model says this."""
    options = {"logit_bias": {str(SCRIPTED.openings[script]): 10}, **more.pop("options", {})}
    return Asked(options=options, **{"max_tokens": None, **more})


SPEAKING: Mapping[str, Asked] = {
    "words": says("words", logprobs=2),
    "words, sampled": says("words", options={"temperature": 0.7}),
    "characters over tokens": says("scripts", logprobs=0),
    "a character that is cut off": says("scripts", max_tokens=6),
    "a stop string in the text": says("words", options={"stop": ["lazy", "STOP"]}, logprobs=1),
    "a stop string of one letter": says("words", options={"stop": "z"}),
    "a stop string at the end": says("words", options={"stop": ["at all."]}),
    "a stop string that is not completed": says("words", options={"stop": ["all. "]}, logprobs=1),
    "a stop string of a split character": says("scripts", options={"stop": ["👩‍👧"]}),
    "a stop string within a call": says("calls", tools=TOOLS, options={"stop": ["Lima"]}),
    "a predicted text": says("words", prediction=SCRIPTS["words"].replace("fox", "dog")),
    "a call": says("call", tools=TOOLS),
    "calls": says("calls", tools=TOOLS, options={"temperature": 0.7}),
    "one call at the most": says("calls", tools=TOOLS, options={"parallel_tool_calls": False}),
    "a call that is cut off": says("call", tools=TOOLS, max_tokens=19),
    "no calls wanted": says("call", tools=TOOLS, choice="none"),
    "no call after all": says("malformed", tools=TOOLS),
    "calls that must come": says("calls", tools=TOOLS, choice="required", max_tokens=90),
    "thoughts": says("thoughts"),
    "thoughts that are cut off": says("thoughts", max_tokens=10),
    "thoughts, then a call": says("thoughtful call", tools=TOOLS),
}
RANDOM: Mapping[str, Asked] = {
    "greedy": Asked(max_tokens=40, logprobs=3),
    "seeded": Asked(max_tokens=40, options={"temperature": 0.8, "seed": 2**53 - 1}, logprobs=0),
    "filtered": Asked(options={"temperature": 1.1, "top_k": 20, "top_p": 0.9, "min_p": 0.02}),
    "penalties": Asked(
        options={"repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": 0.3}, logprobs=2
    ),
    "biased": Asked(options={"logit_bias": {"2": -100, "120": 3}, "temperature": 0.9}),
    "one token": Asked(max_tokens=1),
    "to the end of the context": Asked(
        messages=(("user", LONG + LONG[:360]),), max_tokens=None, options={"logit_bias": {"2": -100}}
    ),
    "a long prompt": Asked(messages=(("user", LONG),), options={"temperature": 0.6}),
    "roles": Asked(
        messages=(
            ("system", "Be kind."),
            ("user", "one"),
            ("assistant", "two <|im_end|>"),
            ("developer", "Be quick."),
            ("user", "three 🎉 你好"),
        )
    ),
    "a schema": Asked(
        form={"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}},
        max_tokens=60,
        options={"temperature": 0.9},
        logprobs=1,
    ),
    "a pattern": Asked(form={"type": "regex", "regex": "(foo|ba+r) [0-9]{3,9}!"}, options={"presence_penalty": 0.5}),
    "a call of a certain tool": Asked(tools=TOOLS, choice="look_up", max_tokens=80, options={"temperature": 0.9}),
    "a call of any tool": Asked(tools=TOOLS[:1], choice="required", max_tokens=120),
    "a call by its schema": Asked(
        tools=({**TOOLS[0], "strict": True},), choice="required", max_tokens=80, options={"parallel_tool_calls": False}
    ),
}
CASES = [("speaking", name) for name in SPEAKING] + [("random", name) for name in RANDOM]


# What the speaking model's answers are, whoever asks: (text, thoughts, arguments of calls, finish).
TOLD: Mapping[str, tuple[str, str, tuple[str, ...], str]] = MappingProxyType(
    {
        "words": (SCRIPTS["words"], "", (), "stop"),
        "characters over tokens": (SCRIPTS["scripts"], "", (), "stop"),
        "a stop string in the text": ("The quick brown fox jumps over the ", "", (), "stop"),
        "a stop string of one letter": ("The quick brown fox jumps over the la", "", (), "stop"),
        "a stop string at the end": (SCRIPTS["words"].removesuffix("at all."), "", (), "stop"),
        "a stop string that is not completed": (SCRIPTS["words"], "", (), "stop"),
        "a stop string of a split character": (SCRIPTS["scripts"].partition("👩‍👧")[0], "", (), "stop"),
        "a call": ("Let me see.\n", "", ('{"city": "Žďár", "days": 3}',), "tool_calls"),
        "calls": ("", "", ('{"city": "Oslo"}', '{"a": [1, 2.5], "b": null}', '{"city": "Lima 🎉"}'), "tool_calls"),
        "one call at the most": ("", "", ('{"city": "Oslo"}',), "tool_calls"),
        "no calls wanted": (SCRIPTS["call"], "", (), "stop"),
        "no call after all": (SCRIPTS["malformed"], "", (), "stop"),
        "thoughts": ("The Loire.", "She asks for a river. The Loire is one; </thin, hm, is no end.", (), "stop"),
        "thoughts, then a call": ("", "I must look.", ('{"city": "Nice"}',), "tool_calls"),
    }
)


def modes_of(case: int, protocol: int) -> tuple[str, ...]:
    """What the protocol's replies of this case are compared over: off, all drafters, and one of them in turn."""
    return ("none", "auto", DRAFTERS[(case + protocol) % len(DRAFTERS)])


def test_every_drafter_meets_every_protocol() -> None:
    met = {(modes_of(case, protocol)[2], protocol) for case in range(len(CASES)) for protocol in range(len(PROTOCOLS))}
    assert len(met) == len(DRAFTERS) * len(PROTOCOLS)


@pytest.mark.parametrize("case", range(len(CASES)), ids=[name for _, name in CASES])
def test_replies_are_the_same_on_every_protocol(clients: dict[str, Client], case: int) -> None:
    model, name = CASES[case]
    client, asked = clients[model], {"speaking": SPEAKING, "random": RANDOM}[model][name]
    expected = warm(client, asked)
    for place, (protocol, ask) in enumerate(PROTOCOLS.items()):
        bodies = []
        for mode in modes_of(case, place):
            reply = ask(client, asked, mode)
            told = expected if reply.answer.logprobs is not None else replace(expected, logprobs=None)
            assert reply.answer == told, (protocol, mode)
            bodies.append(reply.body)
        assert bodies[0] == bodies[1] == bodies[2], protocol


def warm(client: Client, asked: Asked) -> Answer:
    """The plain answer, once the prompt is in the cache."""
    answer = client.chat_body(asked, "none").answer
    cached = (answer.prompt_tokens - 1) // BLOCK * BLOCK
    return replace(answer, cached_tokens=cached)


@pytest.mark.parametrize("name", TOLD)
def test_the_model_says_what_it_is_told_to(clients: dict[str, Client], name: str) -> None:
    answer = clients["speaking"].chat_body(SPEAKING[name], "none").answer
    arguments = tuple(call[2] for call in answer.calls)
    assert (answer.text, answer.thoughts, arguments, answer.finish) == TOLD[name]


@pytest.mark.parametrize("name", ["a call that is cut off", "a stop string within a call"])
def test_a_call_that_is_cut_is_no_call_to_answer(clients: dict[str, Client], name: str) -> None:
    """What was cut is told, and the finish says so unless a whole call came before."""
    answer = clients["speaking"].chat_body(SPEAKING[name], "none").answer
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.calls[-1][2])
    assert answer.finish == ("length" if len(answer.calls) == 1 else "tool_calls")


def test_choices_are_the_replies_of_their_seeds(clients: dict[str, Client]) -> None:
    """A choice of many is what any protocol answers to its seed alone."""
    options = {"temperature": 0.9, "seed": 7}
    texts = clients["random"].choices(Asked(options=options), "auto", 3)
    assert len(set(texts)) == 3
    for index, text in enumerate(texts):
        alone = Asked(options={**options, "seed": derive_seed(7, index)})
        for protocol in ("chat stream", "responses socket", "realtime"):
            assert PROTOCOLS[protocol](clients["random"], alone, "none").answer.text == text
