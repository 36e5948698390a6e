from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.engine.request import Speculation
from paceline.server.fields import Fields
from paceline.server.parameters import (
    MAX_BIASES,
    MAX_STOP_CHARS,
    MAX_STOP_STRINGS,
    Limits,
    Parameters,
    derive_seed,
    random_seed,
    read_parameters,
    speculation_of,
)

LIMITS = Limits(vocab_size=100, speculators=("auto", "suffix", "none"))


def read(values: dict[str, Any], base: Parameters | None = None) -> Parameters:
    return read_parameters(Fields(values), LIMITS, base or Parameters())


def test_every_parameter_arrives() -> None:
    asked = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "frequency_penalty": -0.5,
        "presence_penalty": 0.5,
        "seed": 7,
        "stop": ["a", "b", "a"],
        "logit_bias": {"3": -100, "99": 2.5},
        "logprobs": True,
        "top_logprobs": 3,
        "speculation": {"mode": "suffix", "max_nodes": 8, "telemetry": True, "trace": True},
    }
    read_back = read(asked)
    sampling = read_back.sampling_with(max_tokens=5, seed=7, stop_ids=frozenset({2}))
    for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty"):
        assert getattr(sampling, name) == asked[name]
    assert sampling.presence_penalty == 0.5
    assert sampling.logit_bias == {3: -100.0, 99: 2.5}
    assert sampling.logprobs == 3
    assert sampling.stop_ids == {2}
    assert read_back.stop == ("a", "b")
    assert read_back.speculation == Speculation(mode="suffix", max_nodes=8, trace=True)
    assert read_back.telemetry


def test_nulls_and_absent_fields_keep_the_base() -> None:
    base = read({"temperature": 0.3, "stop": "x", "speculation": {"mode": "none"}})
    nulls = dict.fromkeys(("temperature", "top_p", "stop", "seed", "logit_bias", "logprobs", "speculation"))
    assert read(nulls, base) == base
    assert read({}, base) == base
    assert read({"speculation": {"max_nodes": 4}}, base).speculation == Speculation(mode="none", max_nodes=4)


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 1e9}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"presence_penalty": [1]}, "presence_penalty"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", None]}, "stop"),
        ({"stop": ["x"] * (MAX_STOP_STRINGS + 1)}, "stop"),
        ({"stop": "x" * (MAX_STOP_CHARS + 1)}, "stop"),
        ({"logit_bias": {"100": 1}}, "logit_bias.100"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"logit_bias": {"1": "a"}}, "logit_bias.1"),
        ({"logit_bias": {"1": 101}}, "logit_bias"),
        ({"logit_bias": {str(i): 1 for i in range(MAX_BIASES + 1)}}, "logit_bias"),
        ({"logprobs": 1}, "logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"speculation": "none"}, "speculation"),
        ({"speculation": {"mode": "medusa"}}, "speculation.mode"),
        ({"speculation": {"max_nodes": 0}}, "speculation.max_nodes"),
        ({"speculation": {"max_nodes": 65}}, "speculation.max_nodes"),
        ({"speculation": {"telemetry": 1}}, "speculation.telemetry"),
        ({"speculation": {"trace": "yes"}}, "speculation.trace"),
    ],
)
def test_bad_values_are_one_sentence_that_names_the_field(values: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(values)
    assert caught.value.param == param
    assert str(caught.value).endswith(".")
    assert param.split(".")[0] in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_trace_is_told_with_figures() -> None:
    for asked, figures in (({}, False), ({"telemetry": True}, True), ({"trace": True, "telemetry": False}, True)):
        assert read({"speculation": asked}).figures is figures
    base = read({"speculation": {"trace": True}})
    assert read({"speculation": {"mode": "none"}}, base).figures
    assert not read({"speculation": {"trace": False}}, base).figures


def test_an_unknown_speculator_is_told_which_are_loaded() -> None:
    with pytest.raises(RequestError, match="use one of auto, suffix, none"):
        read({"speculation": {"mode": "medusa"}})


def test_some_spellings_of_off() -> None:
    assert read({"top_k": -1}).sampling.top_k == 0
    assert read({"stop": []}).stop == ()
    assert read({"logprobs": False}).sampling.logprobs is None
    assert read({"logprobs": True}).sampling.logprobs == 0


def test_negative_seeds_are_64_bit_words() -> None:
    assert read({"seed": -1}).seed == 2**64 - 1


def test_derived_seeds_differ_and_choice_0_keeps_its_own() -> None:
    seeds = [derive_seed(42, i) for i in range(1000)]
    assert seeds[0] == 42
    assert len(set(seeds)) == 1000
    assert all(0 <= seed < 2**53 for seed in seeds)  # JavaScript clients can send them back
    assert derive_seed(2**64 - 1, 3) != derive_seed(0, 3)


def test_the_mix_is_splitmix64() -> None:
    """The low 53 bits of the published generator's first outputs from state 0."""
    outputs = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4)
    assert [derive_seed(0, i) for i in (1, 2)] == [output % 2**53 for output in outputs]


def test_random_seeds_survive_a_javascript_client() -> None:
    seeds = {random_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(int(float(seed)) == seed for seed in seeds)


def test_replies_are_reused_under_the_callers_own_key_alone() -> None:
    named = read({"speculation": {"reuse_key": "project"}}).speculation
    assert named.reuse_key == "project"
    keys = {
        speculation_of(base, caller, ()).reuse_key
        for base in (named, replace(named, reuse_key="other"))
        for caller in ("", "one", "two", "one project")
    }
    assert len(keys) == 8
    assert not any("project" in key or "one" in key for key in keys)
    assert speculation_of(named, "one", (1, 2)) == replace(speculation_of(named, "one", ()), prediction=(1, 2))
    assert speculation_of(Speculation(), "one", ()).reuse_key == ""
    assert read({"speculation": {"max_nodes": 3}}, replace(Parameters(), speculation=named)).speculation == replace(
        named, max_nodes=3
    )


@pytest.mark.parametrize("key", [3, ["a"], "x" * 257])
def test_a_reuse_key_of_another_shape_is_refused(key: object) -> None:
    with pytest.raises(RequestError, match=r"speculation\.reuse_key"):
        read({"speculation": {"reuse_key": key}})
