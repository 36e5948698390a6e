"""Tool calls written as JSON objects: name and arguments, in either order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .telling import Chars, NotACallError, Telling, space

_ARGUMENTS = ("arguments", "parameters")
_IN_STRING = re.compile(r'[^"\\]+')
_BESIDE = ("type", "id")  # some models add them; any other field says that the object is no call


def read_call(tell: Telling, char: str, *, any_name: bool) -> Chars[None]:
    """{"name": …, "arguments": {…}}, whose first character, `char`, was read already.

    The arguments are told as they come, exactly as they are written; those written as a string (JSON in JSON) when the
    string is complete, decoded. any_name: else a call of a tool that was not offered is none. Raises NotACallError.
    """
    if char != "{":
        raise NotACallError(char)
    begun = told = False
    early = ""  # arguments that came before the name
    while True:
        key, char = yield from _key(tell)
        if key == "name" and not begun:
            name = _string_in((yield from _whole(tell, char, '"')))
            if not name or not (any_name or name in tell.tools):
                raise NotACallError("")
            tell.begin(name)
            begun = True
            if early:
                tell.arguments(early)
            char = yield from space()
        elif key in _ARGUMENTS and not told:
            told = True
            if begun and char == "{":
                yield from read_object(tell, char, tell.arguments)
                char = yield from space()
            else:
                text, char = yield from _plain_arguments(tell, char)
                if begun:
                    tell.arguments(text)
                else:
                    early = text
        elif key in _BESIDE:
            char = (yield from _value(tell, char))[1]
        else:
            raise NotACallError("")
        if char == "}":
            break
        if char != ",":
            raise NotACallError(char)
    if not begun:
        raise NotACallError("")
    if not told:
        tell.arguments("{}")
    tell.end()


def read_calls(tell: Telling, char: str, *, any_name: bool) -> Chars[None]:
    """One call, or a list of them; as `read_call`. Where only one call is wanted it stops behind the first."""
    if char != "[":
        yield from read_call(tell, char, any_name=any_name)
        return
    while True:
        yield from read_call(tell, (yield from space()), any_name=any_name)
        if tell.enough:
            return
        char = yield from space()
        if char == "]":
            return
        if char != ",":
            raise NotACallError(char)


def read_object(tell: Telling, char: str, put: Callable[[str], None]) -> Chars[None]:
    """A JSON object or list whose first character was read already: each character is put, up to the last bracket."""
    depth = 0
    in_string = escaped = False
    while True:
        if not char:
            raise NotACallError(char)
        put(char)
        if escaped:
            escaped = False
        elif in_string:
            escaped = char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if not depth:
                return
        if in_string and not escaped:
            tell.passing = (_IN_STRING, put)
        char = yield


def _key(tell: Telling) -> Chars[tuple[str, str]]:
    """A field's name, and the first character of its value."""
    key = _string_in((yield from _whole(tell, (yield from space()), '"')))
    colon = yield from space()
    if colon != ":":
        raise NotACallError(colon)
    return key, (yield from space())


def _plain_arguments(tell: Telling, char: str) -> Chars[tuple[str, str]]:
    """The arguments as the text of an object, and the character behind them."""
    text, behind = yield from _value(tell, char)
    if text.startswith('"'):
        text = _string_in(text)
    if text == "null":
        text = "{}"
    if not text.startswith("{"):
        raise NotACallError(behind)
    return text, behind


def _value(tell: Telling, char: str) -> Chars[tuple[str, str]]:
    """A JSON value as it is written, and the character behind it and behind white space."""
    if char in '"{[':
        text = yield from _whole(tell, char, char)
        return text, (yield from space())
    text = ""
    while char and not char.isspace() and char not in ",}]":
        text += char
        char = yield
    return text, (char if char and not char.isspace() else (yield from space()))


def _whole(tell: Telling, char: str, wanted: str) -> Chars[str]:
    """A string, object or list as it is written."""
    if char != wanted:
        raise NotACallError(char)
    text: list[str] = []
    if char != '"':
        yield from read_object(tell, char, text.append)
        return "".join(text)
    escaped = False
    while True:
        text.append(char)
        char = yield
        if not char:
            raise NotACallError(char)
        if not escaped and char == '"':
            return "".join([*text, char])
        escaped = char == "\\" and not escaped


def _string_in(text: str) -> str:
    """What a JSON string says; line breaks are let through in it, as models write them. Raises NotACallError."""
    try:
        value: str = json.loads(text, strict=False)
    except ValueError:
        raise NotACallError("") from None
    return value
