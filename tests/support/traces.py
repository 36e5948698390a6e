"""Traces made by hand, and what must hold of those that a client gets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from paceline.engine.request import TreeTrace

Json = dict[str, Any]


def chain_trace(tokens: Sequence[int], sources: Sequence[str], root: int = 0) -> TreeTrace:
    """A step whose guesses were right, each by the drafters named; the last token, without a source, is the model's."""
    *guesses, bonus = tokens
    n = len(guesses) + 1
    return TreeTrace(
        tokens=(root, *guesses),
        parents=tuple(range(-1, n - 1)),
        sources=("", *sources),
        estimates=(1.0, *[0.5] * (n - 1)),
        chances=(1.0, *[0.25] * (n - 1)),
        path=tuple(range(n)),
        bonus=bonus,
    )


def assert_step(step: Json) -> None:
    """A step agrees with itself, and with its tree if it has one."""
    tokens, nodes = step["tokens"], step["nodes"]
    assert step["ms"] >= 0
    assert (step["drafted"], step["emitted"]) == (nodes - 1, len(tokens))
    assert 0 <= step["accepted"] <= step["emitted"] <= step["accepted"] + 1
    assert all(token["source"] for token in tokens[: step["accepted"]])
    assert all(token["source"] == "" for token in tokens[step["accepted"] :])
    if (grown := step["tree"]) is None:
        return
    columns = {key: len(grown[key]) for key in ("texts", "parents", "sources", "estimates", "chances")}
    assert columns == dict.fromkeys(columns, nodes)
    assert (grown["parents"][0], grown["sources"][0], grown["estimates"][0], grown["chances"][0]) == (-1, "", 1, 1)
    assert all(0 <= parent < node for node, parent in enumerate(grown["parents"][1:], start=1))
    assert all(0 <= value <= 1 for key in ("estimates", "chances") for value in grown[key])
    path = grown["path"]
    assert path[0] == 0
    assert len(path) - 1 == step["accepted"]
    assert [grown["parents"][node] for node in path[1:]] == path[:-1]
    told = [{"text": grown["texts"][node], "source": grown["sources"][node]} for node in path[1:]]
    assert told == tokens[: step["accepted"]]


def assert_traced(deltas: Sequence[Json], emitted: int) -> list[Json]:
    """The steps of a reply of so many tokens, told by deltas {x_spec, `delta`: text}; some may have been merged."""
    steps = [step for delta in deltas for step in delta["x_spec"]["steps"]]
    for step in steps:
        assert_step(step)
    assert sum(step["emitted"] for step in steps) == emitted
    for key in ("drafted", "accepted", "emitted"):
        assert sum(step[key] for step in steps) == sum(delta["x_spec"][key] for delta in deltas)
    for before, step in pairwise(steps):
        if step["tree"] is not None:
            assert step["tree"]["texts"][0] == before["tokens"][-1]["text"]  # the last token is the next one's root
    for delta in deltas:
        if "spans" in delta["x_spec"]:
            assert sum(size for size, _ in delta["x_spec"]["spans"]) == len(delta["delta"])
    return steps
