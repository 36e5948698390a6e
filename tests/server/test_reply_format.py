from __future__ import annotations

import json
from typing import Any

import pytest
from vocabularies import byte_level_tokenizer

from paceline.engine.errors import RequestError
from paceline.server.fields import Fields
from paceline.server.grammars import Grammars
from paceline.server.reply_format import FREE_TEXT, ReplyFormat, lark_of, read_format, read_structured_outputs

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    tokenizer = byte_level_tokenizer()
    return Grammars(tokenizer, tokenizer.vocab_size)


def whole(grammars: Grammars, asked: ReplyFormat, text: str) -> bool:
    """Whether `text` is a reply of that format."""
    matcher = grammars.compile(lark_of(asked), asked.param).matcher()
    tokens = byte_level_tokenizer().encode(text)
    if matcher.fits(tokens) < len(tokens):
        return False
    matcher.advance(tokens)
    return bool(matcher.mask()[0] >> 2 & 1)


def read(values: dict[str, Any]) -> ReplyFormat:
    return read_format(Fields(values, "response_format"))


def structured(values: dict[str, Any]) -> ReplyFormat:
    return read_structured_outputs(Fields(values, "structured_outputs"))


def test_every_protocols_spelling_of_a_schema_is_read() -> None:
    chat = read({"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}})
    assert chat.kind == "json_schema"
    assert json.loads(chat.source) == SCHEMA
    assert chat.strict
    assert chat.param == "response_format.json_schema.schema"
    flat = read_format(Fields({"type": "json_schema", "name": "x", "schema": SCHEMA}, "text.format"))
    assert (flat.source, flat.strict, flat.param) == (chat.source, False, "text.format.schema")
    vllm = structured({"json": SCHEMA})
    assert (vllm.source, vllm.param) == (chat.source, "structured_outputs.json")
    assert json.loads(structured({"json": json.dumps(SCHEMA)}).source) == SCHEMA


def test_the_other_kinds_are_read() -> None:
    assert read({"type": "text"}) == FREE_TEXT
    assert read({"type": "json_object"}).kind == structured({"json_object": True}).kind == "json_object"
    assert read({"type": "regex", "regex": "a+"}) == ReplyFormat("regex", "a+", param="response_format.regex")
    assert structured({"regex": "a+"}).source == "a+"
    assert read({"type": "grammar", "grammar": 'start: "a"'}).source == structured({"grammar": 'start: "a"'}).source


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({}, "type"),
        ({"type": "xml"}, "type"),
        ({"type": 3}, "type"),
        ({"type": "json_schema"}, "schema"),
        ({"type": "json_schema", "json_schema": []}, "json_schema"),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, "json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"schema": "{}"}}, "json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}, "json_schema.strict"),
        ({"type": "json_schema", "schema": json.loads('{"not":' * 300 + "{}" + "}" * 300)}, "schema"),
        ({"type": "regex"}, "regex"),
        ({"type": "regex", "regex": ""}, "regex"),
        ({"type": "regex", "regex": 1}, "regex"),
        ({"type": "grammar"}, "grammar"),
    ],
)
def test_a_format_of_another_shape_is_one_sentence_that_names_the_field(values: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(values)
    assert caught.value.param == f"response_format.{param}"
    assert str(caught.value).startswith(f"response_format.{param} ")
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({}, ""),
        ({"regex": "a", "choice": ["a"]}, ""),
        ({"json": 3}, ".json"),
        ({"json": "{"}, ".json"),
        ({"choice": []}, ".choice"),
        ({"choice": ["a", ""]}, ".choice"),
        ({"choice": "a"}, ".choice"),
    ],
)
def test_structured_outputs_of_another_shape_are_refused(values: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        structured(values)
    assert caught.value.param == f"structured_outputs{param}"
    assert str(caught.value).startswith("structured_outputs")
    assert str(caught.value).endswith(".")


def test_a_schema_is_followed_with_white_space_that_ends(grammars: Grammars) -> None:
    asked = read({"type": "json_schema", "json_schema": {"schema": SCHEMA, "strict": True}})
    values = {"a": -5, "b": ["x", 'q"\\\n']}
    for text in (json.dumps(values), json.dumps(values, indent=2), json.dumps(values, separators=(",", ":"))):
        assert whole(grammars, asked, text), text
    assert whole(grammars, asked, json.dumps(values, indent="\t"))
    for text in ('{"a": 1}', '{"a": 1.5, "b": []}', '{"b": [], "a": 1}', "{}", '{"a": 1, "b": [], "c": 1}'):
        assert not whole(grammars, asked, text), text
    for text in (
        '{"a":  1, "b": []}',
        '{\n\n"a": 1, "b": []}',
        "{\n" + " " * 41 + '"a": 1, "b": []}',
        ' {"a": 1, "b": []}',
    ):
        assert not whole(grammars, asked, text), text
    assert not whole(grammars, asked, '{"a": 1, "b": []}\n')


def test_any_object_is_a_json_object_and_nothing_else(grammars: Grammars) -> None:
    asked = read({"type": "json_object"})
    for text in ("{}", '{"a": [1, {"b": null}], "č": -1.5e3}'):
        assert whole(grammars, asked, text)
    for text in ("[]", "1", '{"a": }', '{"a": 1', "null"):
        assert not whole(grammars, asked, text)


def test_what_a_schema_says_and_cannot_be_enforced_is_left_to_the_model_unless_it_is_strict(grammars: Grammars) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    lenient = read({"type": "json_schema", "json_schema": {"schema": schema}})
    assert whole(grammars, lenient, "[1, 1]")
    strict = read({"type": "json_schema", "json_schema": {"schema": schema, "strict": True}})
    with pytest.raises(RequestError, match="uniqueItems") as caught:
        whole(grammars, strict, "[1]")
    assert caught.value.param == "response_format.json_schema.schema"


@pytest.mark.parametrize(
    ("regex", "good", "bad"),
    [
        (r"a/b\d+", "a/b42", "a/b"),
        (r"^(yes|no)$", "no", "nope"),
        ("line\nbreak", "line\nbreak", "line break"),
        (r"(?i)ok", "oK", "o"),
        (r"[^/]*é", "abcé", "a/é"),
    ],
)
def test_a_regular_expression_matches_the_whole_reply(grammars: Grammars, regex: str, good: str, bad: str) -> None:
    asked = read({"type": "regex", "regex": regex})
    assert whole(grammars, asked, good)
    assert not whole(grammars, asked, bad)


def test_a_choice_is_one_of_its_texts(grammars: Grammars) -> None:
    asked = structured({"choice": ["yes", 'say "no"\n', "yes, čau"]})
    for text in ("yes", 'say "no"\n', "yes, čau"):
        assert whole(grammars, asked, text)
    for text in ("no", "yes,", "yesyes"):
        assert not whole(grammars, asked, text)


def test_a_choice_may_be_among_thousands_that_begin_alike(grammars: Grammars) -> None:
    asked = structured({"choice": [f"k{number}" for number in range(2_500)]})
    assert whole(grammars, asked, "k2499")
    assert whole(grammars, asked, "k24")
    assert not whole(grammars, asked, "k2500")
