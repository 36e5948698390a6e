"""The form a reply must have: the same for every protocol, however each spells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import orjson

from paceline.engine.errors import RequestError

from .fields import Fields, parse_object

# Between the tokens of a JSON text: one space, or one line break with what indents the next line. A weak model that
# likes white space would otherwise write nothing else until its tokens run out.
WHITE_SPACE = r" |\n( {0,40}|\t{0,10})"


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """source: a JSON schema (as JSON text), a regular expression or a grammar in Lark's notation; "" for the others.
    strict: what of a schema cannot be enforced is refused; else it is left to the model. param: what the client called
    it."""

    kind: Literal["text", "json_object", "json_schema", "regex", "grammar"] = "text"
    source: str = ""
    strict: bool = True
    param: str = "response_format"


FREE_TEXT = ReplyFormat()


def read_format(fields: Fields) -> ReplyFormat:
    """A format object: chat completions' `response_format`, whose schema lies in `json_schema`, or the Responses API's
    `text.format`, which holds it itself; besides, {"type": "regex", "regex"} and {"type": "grammar", "grammar"}.

    Raises RequestError, naming the field.
    """
    kind = fields.choice("type", _READERS)
    if kind is None:
        fields.refuse("type", f"is missing; use one of {', '.join(_READERS)}.")
    return _READERS[kind](fields)


def read_structured_outputs(fields: Fields) -> ReplyFormat:
    """vLLM's spelling: an object with one of `json` (a schema, or its text), `regex`, `choice`, `grammar`, or
    `json_object`. Raises RequestError, naming the field.
    """
    named = [key for key in _STRUCTURED if fields.has(key)]
    if len(named) != 1:
        raise RequestError(
            f"{fields.path} must have one of {', '.join(_STRUCTURED)}, got {' and '.join(named) or 'none'}.",
            param=fields.path,
        )
    return _STRUCTURED[named[0]](fields)


def lark_of(asked: ReplyFormat) -> str:
    """The grammar of a reply of any kind but text, for `Grammars.compile`."""
    return _LARKS[asked.kind](asked)


def json_lark(schema: Mapping[str, Any], *, strict: bool = True) -> str:
    """The right side of a rule that a JSON text of this schema matches. strict: as in ReplyFormat."""
    options = {"whitespace_pattern": WHITE_SPACE, "lenient": not strict}
    return "%json " + orjson.dumps({**schema, "x-guidance": options}).decode()


def _read_object(fields: Fields) -> ReplyFormat:
    return ReplyFormat("json_object", param=fields.path)


def _read_schema(fields: Fields) -> ReplyFormat:
    holder = fields.child("json_schema") or fields
    schema = holder.required("schema", "a JSON schema")
    return _of_schema(schema.values, strict=holder.boolean("strict") or False, param=schema.path)


def _read_regex(fields: Fields) -> ReplyFormat:
    return ReplyFormat("regex", _text(fields, "regex", "a regular expression"), param=fields.name("regex"))


def _read_grammar(fields: Fields) -> ReplyFormat:
    source = _text(fields, "grammar", "a grammar in Lark's notation that begins at start")
    return ReplyFormat("grammar", source, param=fields.name("grammar"))


def _read_schema_alone(fields: Fields) -> ReplyFormat:
    """vLLM's `json`: the schema, or its text."""
    value, name = fields.values["json"], fields.name("json")
    if not isinstance(value, str):
        return _of_schema(fields.required("json", "a JSON schema").values, strict=False, param=name)
    return _of_schema(parse_object(value, name, param=name), strict=False, param=name)


def _read_choice(fields: Fields) -> ReplyFormat:
    """vLLM's `choice`: the reply is one of these texts."""
    texts = fields.array("choice") or []
    if not texts or not all(isinstance(text, str) and text for text in texts):
        fields.refuse("choice", "must be a list of texts, none of them empty.")
    # One terminal of all: as rules, more than 2,000 texts that begin alike are more than the parser follows at once.
    rule = " | ".join(orjson.dumps(text).decode() for text in texts)
    return ReplyFormat("grammar", f"start: TEXT\nTEXT: {rule}", param=fields.name("choice"))


def _of_schema(schema: Mapping[str, Any], *, strict: bool, param: str) -> ReplyFormat:
    try:
        return ReplyFormat("json_schema", orjson.dumps(schema).decode(), strict, param)
    except orjson.JSONEncodeError:
        raise RequestError(
            f"{param} is nested too deeply; use references to definitions.", param=param, code="invalid_grammar"
        ) from None


def _lark_of_regex(asked: ReplyFormat) -> str:
    from llguidance import regex_to_lark  # here, as it takes a tenth of a second

    return f"start: /{regex_to_lark(asked.source)}/"


def _text(fields: Fields, key: str, what: str) -> str:
    text = fields.string(key)
    if not text:
        fields.refuse(key, f"is missing; send {what}.")
    return text


_READERS: Mapping[str, Callable[[Fields], ReplyFormat]] = MappingProxyType(
    {
        "text": lambda fields: FREE_TEXT,
        "json_object": _read_object,
        "json_schema": _read_schema,
        "regex": _read_regex,
        "grammar": _read_grammar,
    }
)
_STRUCTURED: Mapping[str, Callable[[Fields], ReplyFormat]] = MappingProxyType(
    {
        "json": _read_schema_alone,
        "json_object": _read_object,
        "regex": _read_regex,
        "choice": _read_choice,
        "grammar": _read_grammar,
    }
)
_LARKS: Mapping[str, Callable[[ReplyFormat], str]] = MappingProxyType(
    {
        "json_object": lambda asked: "start: " + json_lark({"type": "object"}),
        "json_schema": lambda asked: "start: " + json_lark(orjson.loads(asked.source), strict=asked.strict),
        "regex": _lark_of_regex,
        "grammar": lambda asked: asked.source,
    }
)
