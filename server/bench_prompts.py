"""Prompts for the benchmark: Spec-Bench questions, chat messages, or plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from paceline.engine.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation to measure: the messages to start with, then further user turns, asked one after the other."""

    id: str
    category: str
    messages: tuple[Mapping[str, Any], ...]
    follow_ups: tuple[str, ...] = ()


def load_prompts(path: Path) -> list[Prompt]:
    """Read a file of prompts, one a line; empty lines are skipped.

    A line that is a JSON object has `turns` (Spec-Bench: question_id, category, turns), `messages` or `prompt`; any
    other line is a prompt as it stands. Raises ConfigError for a file without prompts, text that is not UTF-8, or a
    JSON line without any of these fields.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text; give a JSONL or text file of prompts.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a JSONL or text file of prompts.") from error
    prompts = [_parse(line.strip(), number, path) for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise ConfigError(f"{path} holds no prompts; write one a line.")
    return prompts


def spread(prompts: Sequence[Prompt], limit: int | None) -> list[Prompt]:
    """At most `limit` prompts, taken from the categories in turn and evenly within each, in the order of the file."""
    if limit is None or limit >= len(prompts):
        return list(prompts)
    categories: dict[str, list[int]] = {}
    for index, prompt in enumerate(prompts):
        categories.setdefault(prompt.category, []).append(index)
    shares = dict.fromkeys(categories, 0)
    left = limit
    while left:
        for name, members in categories.items():
            if left and shares[name] < len(members):
                shares[name] += 1
                left -= 1
    chosen = [
        members[position * len(members) // shares[name]]
        for name, members in categories.items()
        for position in range(shares[name])
    ]
    return [prompts[index] for index in sorted(chosen)]


def _parse(line: str, number: int, path: Path) -> Prompt:
    record: Any = None
    if line.startswith("{"):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{path}, line {number}: not valid JSON ({error}).") from error
    if record is None:
        return Prompt(str(number), "", (_user(line),))
    identity = str(record.get("question_id", record.get("id", number)))
    category = str(record.get("category", ""))
    match record:
        case {"turns": [str(first), *rest]} if all(isinstance(turn, str) for turn in rest):
            return Prompt(identity, category, (_user(first),), tuple(rest))
        case {"messages": [*messages]} if messages and all(isinstance(message, dict) for message in messages):
            return Prompt(identity, category, tuple(messages))
        case {"prompt": str(text)} if text:
            return Prompt(identity, category, (_user(text),))
        case _:
            raise ConfigError(f"{path}, line {number}: needs 'turns', 'messages' or 'prompt' with text in it.")


def _user(text: str) -> Mapping[str, Any]:
    return {"role": "user", "content": text}
