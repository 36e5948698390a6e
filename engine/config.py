"""What a user may set about the engine. Numbers are checked here, names but empty ones where they are looked up."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.spec.tree import MAX_NODES

from .errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Raises ConfigError, naming the option, for a value that cannot work anywhere."""

    max_batch: int = 16  # sequences that run at once
    step_budget: int = 512  # rows of one step, prefill and trees together
    context_length: int | None = None  # tokens of prompt and reply; None: what model and memory allow
    kv_memory: int | None = None  # bytes for keys and values; None: the device's default
    threads: int | None = None  # None: all cores
    device: str = "auto"  # "auto", "cpu" or "cuda"
    backend: str = "auto"  # "auto", "native", "triton" or "reference"
    weights: str = "stored"  # format weights are kept in: "stored" or one the backend rounds to
    activations: str = "mixed"  # what the native backend's quantised products read: "mixed", "int8" or "int16"
    kv_format: str = "auto"  # format of cached keys and values
    exact: bool = False  # whether a GPU computes prompts in the order of summation that it computes single tokens in
    speculator: str = "auto"  # "auto", "none", or names, folders and files of drafters with commas between
    max_nodes: int = 16  # rows of a tree, its root included
    queue_limit: int = 256  # requests that wait for a place in the batch

    def __post_init__(self) -> None:
        for name, low in (("max_batch", 1), ("step_budget", 1), ("max_nodes", 1), ("queue_limit", 1)):
            _at_least(name, getattr(self, name), low)
        for name, low in (("context_length", 2), ("kv_memory", 1), ("threads", 1)):
            value = getattr(self, name)
            if value is not None:
                _at_least(name, value, low)
        if self.step_budget < self.max_batch:
            raise ConfigError(
                f"--step-budget is {self.step_budget}, below --max-batch {self.max_batch}; "
                "every running sequence needs one row per step."
            )
        if self.max_nodes > MAX_NODES:
            raise ConfigError(f"--max-nodes is {self.max_nodes}; a tree has at most {MAX_NODES} nodes.")
        if not all(name.strip() for name in self.speculator.split(",")):
            raise ConfigError(
                f"--speculator {self.speculator[:60]!r} holds an empty name; take out the comma too many."
            )


def _at_least(name: str, value: int, low: int) -> None:
    if value < low:
        raise ConfigError(f"--{name.replace('_', '-')} must be at least {low}, got {value}.")
