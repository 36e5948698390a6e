from __future__ import annotations

from typing import Any

import orjson
import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.parameters import Limits
from paceline.server.stream_options import StreamOptions
from paceline.server.text_request import Prompt, TextRequest, parse_text_request, read_prompts

LIMITS = Limits(vocab_size=100, speculators=("auto", "none"))


def parse(**body: Any) -> TextRequest:
    data = orjson.dumps({"prompt": "once", **body})
    return parse_text_request(data, LIMITS, max_choices=4, max_replies=6)


def test_defaults() -> None:
    asked = parse()
    assert (asked.model, asked.prompts, asked.n, asked.delivery) == (None, ("once",), 1, StreamOptions())
    assert asked.parameters.max_tokens == 16
    assert asked.parameters.sampling.logprobs is None


def test_nulls_are_absent_and_harmless_extras_are_ignored() -> None:
    names = "model suffix max_tokens temperature top_p n stream stream_options logprobs echo stop presence_penalty"
    extras = {"user": "me", "echo": False, "suffix": "", "best_of": 1, "functions": [], "x-unknown": [1]}
    assert parse(**dict.fromkeys(f"{names} frequency_penalty best_of logit_bias seed tools".split())) == parse()
    assert parse(**extras) == parse()


def test_logprobs_are_a_number_here() -> None:
    assert parse(logprobs=0).parameters.sampling.logprobs == 0
    assert parse(logprobs=5).parameters.sampling.logprobs == 5


def test_the_sampling_fields_of_every_protocol() -> None:
    asked = parse(max_tokens=7, temperature=0.5, stop=["a", "b"], seed=3, top_k=2, logit_bias={"5": 1}, n=2, best_of=2)
    assert (asked.parameters.max_tokens, asked.parameters.stop, asked.parameters.seed) == (7, ("a", "b"), 3)
    assert asked.parameters.sampling.logit_bias == {5: 1.0}
    assert asked.n == 2


@pytest.mark.parametrize(
    ("value", "prompts"),
    [
        ("a", ("a",)),
        (["a"], ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1], [2, 3]], ((1,), (2, 3))),
        (["a", [1]], ("a", (1,))),
    ],
)
def test_every_form_of_a_prompt(value: Any, prompts: tuple[Prompt, ...]) -> None:
    assert read_prompts(Fields({"prompt": value}), 100) == prompts


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": {}}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": [""]}, "prompt[0]"),
        ({"prompt": ["a", []]}, "prompt[1]"),
        ({"prompt": ["a", 5]}, "prompt[1]"),
        ({"prompt": [1, "a"]}, "prompt[1]"),
        ({"prompt": [1, 100]}, "prompt[1]"),
        ({"prompt": [[1], [-1]]}, "prompt[1][0]"),
        ({"prompt": [True]}, "prompt[0]"),
        ({"prompt": [None]}, "prompt[0]"),
        ({"prompt": [1.5]}, "prompt[0]"),
        ({"prompt": ["a"] * 7}, "prompt"),
        ({"prompt": ["a"] * 2, "n": 4}, "prompt"),
        ({"n": 0}, "n"),
        ({"n": 5}, "n"),
        ({"n": 2, "best_of": 1}, "best_of"),
        ({"n": 2, "best_of": 3}, "best_of"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"echo": "yes"}, "echo"),
        ({"suffix": 3}, "suffix"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream_options": 1}, "stream_options"),
    ],
)
def test_bad_bodies_name_the_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(**body)
    assert caught.value.param == param
    assert str(caught.value).startswith(param)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("body", "param"),
    [({"echo": True}, "echo"), ({"suffix": "end"}, "suffix"), ({"tools": [{"type": "function"}]}, "tools")],
)
def test_what_cannot_be_honoured_is_refused_not_dropped(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "unsupported", param)
