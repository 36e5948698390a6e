"""Engine options are checked where they are made, and each refusal names the option as a user typed it."""

from __future__ import annotations

import pytest

from paceline.engine.config import EngineConfig
from paceline.engine.errors import ConfigError
from paceline.spec.tree import MAX_NODES

LOWEST = {
    "max_batch": 1,
    "step_budget": 1,
    "max_nodes": 1,
    "queue_limit": 1,
    "context_length": 2,
    "kv_memory": 1,
    "threads": 1,
}


@pytest.mark.parametrize(("name", "low"), LOWEST.items())
def test_a_value_below_the_lowest_names_its_option(name: str, low: int) -> None:
    with pytest.raises(ConfigError, match=f"^--{name.replace('_', '-')} must be at least {low}, got {low - 1}\\.$"):
        EngineConfig(**{name: low - 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "low"), LOWEST.items())
def test_the_lowest_value_is_allowed(name: str, low: int) -> None:
    config = EngineConfig(**{"max_batch": 1, name: low})  # type: ignore[arg-type]
    assert getattr(config, name) == low


def test_every_running_sequence_needs_a_row() -> None:
    EngineConfig(max_batch=8, step_budget=8)
    with pytest.raises(ConfigError, match="--step-budget is 7, below --max-batch 8"):
        EngineConfig(max_batch=8, step_budget=7)


def test_a_tree_is_no_larger_than_its_ancestor_words() -> None:
    assert EngineConfig(max_nodes=MAX_NODES).max_nodes == MAX_NODES
    with pytest.raises(ConfigError, match=f"--max-nodes is {MAX_NODES + 1}"):
        EngineConfig(max_nodes=MAX_NODES + 1)


@pytest.mark.parametrize("speculator", ["suffix,,recurrent", "suffix,", ", suffix", " "])
def test_an_empty_name_among_drafters_is_refused(speculator: str) -> None:
    with pytest.raises(ConfigError, match=f"^--speculator '{speculator}' holds an empty name"):
        EngineConfig(speculator=speculator)


def test_the_defaults_are_sound() -> None:
    config = EngineConfig()
    assert config.context_length is None
    assert config.kv_memory is None
    assert config.step_budget >= config.max_batch
