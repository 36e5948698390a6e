"""Requests are checked where they are made, and each refusal names its field."""

from __future__ import annotations

import dataclasses
import math

import pytest

from paceline.engine.errors import RequestError
from paceline.engine.request import (
    MAX_TOP_LOGPROBS,
    PRIORITY_ORDER,
    Delta,
    Request,
    SamplingParams,
    Speculation,
    TreeTrace,
)
from paceline.spec.tree import MAX_NODES

NOT_FINITE = (math.nan, math.inf, -math.inf)
TOO_LARGE = 10**400  # an integer that no float can hold

BAD: dict[str, tuple[object, ...]] = {
    "max_tokens": (0, -1),
    "seed": (-1, 2**64),
    "temperature": (-0.1, 100.1, TOO_LARGE, *NOT_FINITE),
    "top_p": (0.0, -0.5, 1.01, *NOT_FINITE),
    "min_p": (-0.01, 1.5, *NOT_FINITE),
    "top_k": (-1,),
    "repetition_penalty": (0.0, -1.0, 101.0, *NOT_FINITE),
    "frequency_penalty": (-2.1, 2.1, *NOT_FINITE),
    "presence_penalty": (-2.1, 2.1, *NOT_FINITE),
    "logit_bias": ({1: 100.5}, {1: 0.0, 2: -101}, {3: TOO_LARGE}, *({1: value} for value in NOT_FINITE)),
}

EDGES: dict[str, tuple[object, ...]] = {
    "max_tokens": (1,),
    "seed": (0, 2**64 - 1),
    "temperature": (0, 0.0, 100),
    "top_p": (1, 1e-9),
    "min_p": (0.0, 1.0),
    "top_k": (0, 1, 10**9),
    "repetition_penalty": (0.01, 100.0),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "logit_bias": ({}, {0: -100, 7: 100}),
    "logprobs": (None, 0, MAX_TOP_LOGPROBS),
}


def sampling(**fields: object) -> SamplingParams:
    return SamplingParams(**{"max_tokens": 5, "seed": 1, **fields})  # type: ignore[arg-type]


def request(**fields: object) -> Request:
    return Request(**{"id": "r", "prompt": (1,), "sampling": sampling(), **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}-{str(value)[:12]}-{i}")
        for name, values in BAD.items()
        for i, value in enumerate(values)
    ],
)
def test_a_bad_sampling_value_names_its_field(name: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        sampling(**{name: value})
    assert caught.value.param == name
    assert name in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [-1, MAX_TOP_LOGPROBS + 1])
def test_a_bad_number_of_logprobs_names_the_field_of_the_wire(value: int) -> None:
    with pytest.raises(RequestError) as caught:
        sampling(logprobs=value)
    assert caught.value.param == "top_logprobs"
    assert "top_logprobs" in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in EDGES.items() for value in values])
def test_the_edges_of_every_range_are_allowed(name: str, value: object) -> None:
    assert getattr(sampling(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("fields", "rewrites"),
    [
        ({}, False),
        ({"temperature": 0.3, "top_k": 3, "top_p": 0.5, "min_p": 0.1, "logprobs": 2}, False),
        ({"repetition_penalty": 1.1}, True),
        ({"repetition_penalty": 0.9}, True),
        ({"frequency_penalty": -0.1}, True),
        ({"presence_penalty": 0.1}, True),
        ({"logit_bias": {4: 0.0}}, True),
    ],
)
def test_only_penalties_and_bias_rewrite_logits(fields: dict[str, object], rewrites: bool) -> None:
    assert sampling(**fields).rewrites_logits is rewrites


@pytest.mark.parametrize("nodes", [0, -1, MAX_NODES + 1])
def test_a_tree_has_one_to_sixty_four_nodes(nodes: int) -> None:
    with pytest.raises(RequestError) as caught:
        Speculation(max_nodes=nodes)
    assert caught.value.param == "speculation.max_nodes"
    assert str(MAX_NODES) in str(caught.value)


@pytest.mark.parametrize("nodes", [1, MAX_NODES])
def test_the_edges_of_the_tree_size_are_allowed(nodes: int) -> None:
    assert Speculation(max_nodes=nodes).max_nodes == nodes


@pytest.mark.parametrize(("param", "fields"), [("messages", {"prompt": ()}), ("priority", {"priority": "urgent"})])
def test_a_bad_request_names_its_field(param: str, fields: dict[str, object]) -> None:
    with pytest.raises(RequestError) as caught:
        request(**fields)
    assert caught.value.param == param


def test_a_wrong_priority_is_told_the_right_ones() -> None:
    with pytest.raises(RequestError, match=r"interactive, normal, background.*'urgent'"):
        request(priority="urgent")


def test_priorities_are_served_in_this_order() -> None:
    assert sorted(PRIORITY_ORDER, key=PRIORITY_ORDER.__getitem__) == ["interactive", "normal", "background"]


@pytest.mark.parametrize("value", [sampling(), request(), Speculation(), Delta(request_id="r", tokens=(1,))])
def test_values_are_immutable(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)


@pytest.mark.parametrize(
    ("count", "path", "emitted"),
    [
        (0, (0,), ()),
        (1, (0, 1), ((7, "b"),)),
        (2, (0, 1, 2), ((7, "b"), (8, "c"))),
        (3, (0, 1, 2), ((7, "b"), (8, "c"), (9, ""))),
    ],
)
def test_what_a_reply_keeps_of_a_step(count: int, path: tuple[int, ...], emitted: tuple[tuple[int, str], ...]) -> None:
    whole = TreeTrace(
        tokens=(1, 7, 8),
        parents=(-1, 0, 1),
        sources=("", "b", "c"),
        estimates=(1.0, 0.5, 0.5),
        chances=(1.0, 0.5, 0.5),
        path=(0, 1, 2),
        bonus=9,
    )
    kept = whole.kept(count)
    assert (kept.path, kept.emitted) == (path, emitted)
    assert kept.tokens == whole.tokens
