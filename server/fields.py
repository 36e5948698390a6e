"""Typed reading of one JSON object: every refusal is one sentence that names the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import orjson

from paceline.engine.errors import RequestError

JsonObject = dict[str, Any]


MAX_DEPTH = (
    100  # of objects and lists in one another: what writes JSON stops at 254, and answers repeat parts of requests
)


def parse_object(data: bytes | str, what: str, *, param: str | None = None) -> JsonObject:
    """The JSON object in `data`, which messages call `what`. RequestError (code `invalid_json`) for anything else.

    param: the field whose text `data` is.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RequestError(
            f"{what} is not valid JSON ({error}); send one JSON object in UTF-8, without NaN or Infinity.",
            param=param,
            code="invalid_json",
        ) from None
    if not isinstance(value, dict):
        raise RequestError(f"{what} must be a JSON object, got {describe(value)}.", param=param, code="invalid_json")
    if _deeper(value, MAX_DEPTH):
        raise RequestError(
            f"{what} has objects or lists more than {MAX_DEPTH} deep in one another; make it flatter.",
            param=param,
            code="invalid_json",
        )
    return value


def _deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists lie more than so many deep in one another."""
    inner = [value]
    for _ in range(levels):
        entries = [entry for each in inner for entry in (each.values() if isinstance(each, dict) else each)]
        inner = [entry for entry in entries if isinstance(entry, dict | list)]
        if not inner:
            return False
    return True


def describe(value: Any) -> str:
    """A JSON value in words, short enough for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {value[:40]!r}" + ("…" if len(value) > 40 else "")
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"the number {value}"


class Fields:
    """One JSON object and where it stands. An explicit null counts as absent; unknown keys are ignored."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self.path = path

    def name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def refuse(self, key: str, message: str, code: str | None = None) -> NoReturn:
        """Raises RequestError; `message` follows the field's name."""
        raise RequestError(f"{self.name(key)} {message}", param=self.name(key), code=code)

    def _typed(self, key: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            self.refuse(key, f"must be {wanted}, got {describe(value)}.")
        return value

    def integer(self, key: str, low: int | None = None, high: int | None = None) -> int | None:
        wide = self.values.get(key)
        if isinstance(wide, float) and abs(wide) >= 2**63:  # the parser makes such a number of what 64 bits cannot hold
            self.refuse(key, f"is too {'small' if wide < 0 else 'large'}; it must be an integer of at most 64 bits.")
        value: int | None = self._typed(key, int, "an integer")
        if value is not None and ((low is not None and value < low) or (high is not None and value > high)):
            bound = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
            self.refuse(key, f"must be {bound}, got {value}.")
        return value

    def number(self, key: str) -> float | None:
        value = self._typed(key, (int, float), "a number")
        return None if value is None else float(value)

    def boolean(self, key: str) -> bool | None:
        value: bool | None = self._typed(key, bool, "true or false")
        return value

    def string(self, key: str) -> str | None:
        value: str | None = self._typed(key, str, "a string")
        return value

    def choice(self, key: str, allowed: Iterable[str]) -> str | None:
        value = self.string(key)
        names = list(allowed)
        if value is not None and value not in names:
            self.refuse(key, f"must be one of {', '.join(names)}, got {describe(value)}.")
        return value

    def array(self, key: str) -> list[Any] | None:
        value: list[Any] | None = self._typed(key, list, "a list")
        return value

    def child(self, key: str) -> Fields | None:
        value = self._typed(key, dict, "an object")
        return None if value is None else Fields(value, self.name(key))

    def required(self, key: str, contents: str) -> Fields:
        """A child that must be there; `contents` says what belongs into it."""
        child = self.child(key)
        if child is None:
            self.refuse(key, f"is missing; send an object with {contents}.")
        return child

    def each(self, key: str) -> list[Fields]:
        """A list of objects; absent is empty."""
        out = []
        for i, value in enumerate(self.array(key) or []):
            if not isinstance(value, dict):
                self.refuse(f"{key}[{i}]", f"must be an object, got {describe(value)}.")
            out.append(Fields(value, self.name(f"{key}[{i}]")))
        return out
