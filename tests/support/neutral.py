"""A request and its answer in words that belong to no protocol, and what each protocol's own words for them are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]

# What the socket and the Responses API call an end, where no tool was called -> chat completions' finish reason.
FINISHES: Mapping[tuple[str, str | None], str] = MappingProxyType(
    {("completed", None): "stop", ("incomplete", "max_output_tokens"): "length"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """messages: (role, content) each. options: fields that all protocols spell alike. form: as in `response_format`."""

    messages: Sequence[tuple[str, str]] = (("user", "hi there"),)
    max_tokens: int | None = 24
    options: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Json] = ()  # each {name, description?, parameters?, strict?}
    choice: str | None = None  # "required", "auto", "none", or the name of a tool
    form: Json | None = None
    logprobs: int | None = None
    prediction: str | None = None
    trace: bool = False  # asked for in place of telemetry, which it implies

    def shared(self, mode: str) -> Json:
        return {
            "seed": 11,
            "temperature": 0.0,
            **self.options,
            "speculation": {"mode": mode, "trace" if self.trace else "telemetry": True},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    text: str
    thoughts: str
    calls: tuple[tuple[str, str, str], ...]  # id, name, arguments as they were written
    finish: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    logprobs: tuple[Any, ...] | None = None  # None where the protocol tells none


@dataclass(frozen=True, slots=True)
class Reply:
    """body: all that came, with what belongs to the moment taken out and deltas joined."""

    answer: Answer
    body: Any


def assert_prompt_told(events: Sequence[Json], answer: Answer) -> None:
    """The first figures of a stream say of the prompt what usage says at the end; no others do."""
    told = [event["x_spec"] for event in events if "x_spec" in event]
    counts = [(spec["input_tokens"], spec["cached_tokens"]) for spec in told if "input_tokens" in spec]
    assert counts == [(answer.prompt_tokens, answer.cached_tokens)]
    assert "input_tokens" in told[0]


def finish_of(status: str, reason: str | None, calls: Sequence[object]) -> str:
    finish = FINISHES[status, reason]
    return "tool_calls" if calls and finish == "stop" else finish


# Differs between two equal requests, or tells how the reply came about.
_OF_THE_MOMENT = frozenset(
    {"created", "created_at", "completed_at", "event_id", "sequence_number", "metrics", "speculation"}
    | {"x_seq", "x_spec", "cached_tokens", "cache_write_tokens", "cached_tokens_details"}
)
_ID = re.compile(r"(chatcmpl|resp|msg|item|fc|rs|conv|sess)[-_][0-9a-zA-Z_-]{8,}")


def timeless(events: Any) -> Any:
    """Without what depends on the moment; ids are named in the order in which they come."""
    names: dict[str, str] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(entry) for key, entry in value.items() if key not in _OF_THE_MOMENT}
        if isinstance(value, list):
            return [walk(entry) for entry in value]
        if isinstance(value, str) and (match := _ID.fullmatch(value)):
            return names.setdefault(value, f"{match[1]} {len(names)}")
        return value

    return walk(events)


def joined(events: Sequence[Json]) -> list[Json]:
    """Deltas of one kind and place side by side as one: how a text is cut into pieces is no promise."""
    out: list[Json] = []
    for event in events:
        if not isinstance(event.get("delta"), str):
            out.append(event)
        elif out and _place(out[-1]) == _place(event):
            last = out[-1] = dict(out[-1])
            last["delta"] += event["delta"]
            if "logprobs" in event:
                last["logprobs"] = last["logprobs"] + event["logprobs"]
        else:
            out.append(event)
    return out


def _place(event: Json) -> Any:
    return [(key, value) for key, value in event.items() if key not in ("delta", "logprobs")]
