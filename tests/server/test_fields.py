from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from paceline.engine.errors import RequestError
from paceline.server.fields import MAX_DEPTH, Fields, describe, parse_object


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": NaN}', b'{"a": Infinity}', b"\xff", b'{"a": "\\ud800"}', b"[" * 5000]
)
def test_broken_json_is_one_sentence(data: bytes) -> None:
    with pytest.raises(RequestError, match=r"^The body is not valid JSON .* send one JSON object") as caught:
        parse_object(data, "The body")
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_what_can_be_read_can_be_written_in_an_answer(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return '{"a":' + opening * (levels - 1) + "1" + closing * (levels - 1) + "}"

    orjson.dumps([[[[parse_object(nested(MAX_DEPTH), "The body")]]]])
    for levels in (MAX_DEPTH + 1, 300):
        with pytest.raises(RequestError, match="The body has objects or lists more than 100 deep") as caught:
            parse_object(nested(levels), "The body", param="a field")
        assert (caught.value.param, caught.value.code) == ("a field", "invalid_json")


@pytest.mark.parametrize("data", ["[]", "1", "null", '"text"'])
def test_only_an_object_will_do(data: str) -> None:
    with pytest.raises(RequestError, match="must be a JSON object"):
        parse_object(data, "The body")


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (Fields.integer, 1.5),
        (Fields.integer, 1.0),
        (Fields.integer, True),
        (Fields.integer, "1"),
        (Fields.number, "0.5"),
        (Fields.number, False),
        (Fields.boolean, 1),
        (Fields.boolean, "true"),
        (Fields.string, 1),
        (Fields.array, {}),
        (Fields.child, []),
    ],
)
def test_wrong_types_name_the_field(read: Callable[[Fields, str], Any], value: Any) -> None:
    with pytest.raises(RequestError, match=r"^outer\.key must be .*, got ") as caught:
        read(Fields({"key": value}, "outer"), "key")
    assert caught.value.param == "outer.key"


@pytest.mark.parametrize(
    "read", [Fields.integer, Fields.number, Fields.boolean, Fields.string, Fields.array, Fields.child]
)
def test_null_is_absent(read: Callable[[Fields, str], Any]) -> None:
    assert read(Fields({"key": None}), "key") is None
    assert read(Fields({}), "key") is None
    assert not Fields({"key": None}).has("key")


def test_values_come_through() -> None:
    fields = Fields({"i": 3, "n": 2, "b": False, "s": "", "o": {"x": 1}, "l": [{"y": 2}]})
    assert (fields.integer("i"), fields.number("n"), fields.boolean("b"), fields.string("s")) == (3, 2.0, False, "")
    child = fields.child("o")
    assert child is not None
    assert child.name("x") == "o.x"
    assert [entry.name("y") for entry in fields.each("l")] == ["l[0].y"]
    assert fields.each("absent") == []


def test_bounds_and_choices_say_what_is_allowed() -> None:
    with pytest.raises(RequestError, match=r"^n must be at least 1, got 0\.$"):
        Fields({"n": 0}).integer("n", low=1)
    with pytest.raises(RequestError, match=r"^n must be 1 to 4, got 5\.$"):
        Fields({"n": 5}).integer("n", low=1, high=4)
    with pytest.raises(RequestError, match=r"^c must be one of a, b, got the string 'x'\.$"):
        Fields({"c": "x"}).choice("c", ("a", "b"))
    with pytest.raises(RequestError, match=r"^l\[1\] must be an object, got the number 2\.$"):
        Fields({"l": [{}, 2]}).each("l")


def test_long_strings_are_not_echoed_whole() -> None:
    assert len(describe("x" * 10_000)) < 80


@pytest.mark.parametrize(("number", "word"), [(2**64, "too large"), (2**70, "too large"), (-(2**70), "too small")])
def test_integers_beyond_64_bits_are_called_that(number: int, word: str) -> None:
    fields = Fields(parse_object(f'{{"seed": {number}}}', "The body"))
    with pytest.raises(RequestError, match=f"^seed is {word}"):
        fields.integer("seed", low=0)
