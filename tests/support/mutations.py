"""Messages that are valid but for a few places: wrong types, odd values, lost and doubled fields, cut text."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 1e-9, 0.5, -0.0, 1e308),
    *(2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, float("nan"), float("inf")),
    *("", " ", "\x00", "🎉", "\ud800", "a\udfffb", "é" * 70, "x" * 400, "<|im_end|>", "<tool_call>", "</think>"),
    *(
        "auto",
        "none",
        "1",
        "user",
        "assistant",
        "tool",
        "function",
        "text",
        "message",
        "json_schema",
        "default",
        "root",
    ),
    *(
        [],
        [None],
        [[]],
        ["a", 1],
        [{}],
        {},
        {"type": None},
        {"type": "text"},
        {"": {}},
        {"type": "function", "name": "f"},
    ),
    *(["deep", 90], ["deep", 300]),  # see `_grown`
)
odd_values: st.SearchStrategy[Any] = st.sampled_from(_ODD)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every entry of every object and list."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, entry in entries for found in [(*path, key), *_places(entry, (*path, key))]]


def _grown(value: Any) -> Any:
    """An own copy; what stands for deep nesting is nested deeply."""
    value = copy.deepcopy(value)
    match value:
        case ["deep", levels]:
            value = "the bottom"
            for level in range(levels):
                value = [value] if level % 3 else {"a": value}
    return value


@st.composite
def mutated(draw: st.DrawFn, valid: Sequence[dict[str, Any]], extra: Sequence[str] = ()) -> Any:
    """One of the valid messages with up to four changes. extra: names of fields that may be added."""
    message = copy.deepcopy(draw(st.sampled_from(valid)))
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 1, 2, 4)))):
        places = _places(message)
        if extra and draw(st.booleans()):
            message[draw(st.sampled_from(extra))] = _grown(draw(odd_values))
        elif places:
            *path, last = draw(st.sampled_from(places))
            holder = message
            for key in path:
                holder = holder[key]
            match draw(st.sampled_from(("replace", "replace", "drop", "double"))):
                case "replace":
                    holder[last] = _grown(draw(odd_values))
                case "drop":
                    del holder[last]
                case "double" if isinstance(holder, list):
                    holder.extend([holder[last]] * draw(st.sampled_from((1, 3, 200))))
                case _:
                    holder[str(last) + "_"] = holder[last]
    return message


@st.composite
def texts(draw: st.DrawFn, messages: st.SearchStrategy[Any]) -> str:
    """A message as text, which is now and then cut, doubled or no JSON object at all."""
    text = json.dumps(draw(messages))
    match draw(st.sampled_from(("whole",) * 17 + ("cut", "twice", "other"))):
        case "cut":
            return text[: draw(st.integers(0, len(text)))]
        case "twice":
            return text + text
        case "other":
            return draw(
                st.sampled_from(("", "null", "[]", '"text"', "{", "}", "[" * 5000, '{"a":' * 5000, "{}", "\x00"))
            )
        case _:
            return text
