"""What a device has left for the cache, before anything is loaded; refusals say what to lower."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import RandomCheckpoint

from paceline.engine.config import EngineConfig
from paceline.engine.errors import ConfigError
from paceline.engine.memory import enough_memory, memory_left, size_cache
from paceline.kernels import backend
from paceline.kernels.backend import Ops
from paceline.kernels.paging import BLOCK_SIZE

GIB = 1 << 30
BLOCK = 1 << 20


def machine(free: int | None) -> Ops:
    """One whose weights take a MiB each: the tiny model has ten matrices."""
    return replace(backend.load(), free_memory=lambda: free, packed_bytes=lambda matrix: 1 << 20)


def test_weights_and_passes_are_taken_off_before_the_cache_is_sized() -> None:
    weights = RandomCheckpoint(31).load()
    assert memory_left(machine(3 * GIB), weights) == 3 * GIB - (10 << 20) - GIB
    assert memory_left(machine(None), weights) is None


def test_a_model_that_is_too_large_is_refused_with_what_it_needs_and_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"need 1\.01 GiB of the GPU's memory, and 500 MiB are free; use .*cpu\.$"):
        memory_left(machine(500 << 20), RandomCheckpoint(31).load())


def test_a_device_gives_most_of_what_is_left_and_no_more_than_there_is() -> None:
    config = EngineConfig(max_batch=1000, step_budget=1000)
    blocks, context = size_cache(config, GIB, BLOCK, 100_000)
    assert blocks == int(GIB * 0.8) // BLOCK
    assert context == min(100_000, blocks * BLOCK_SIZE)
    assert size_cache(replace(config, kv_memory=3 * BLOCK), GIB, BLOCK, 100_000) == (3, 3 * BLOCK_SIZE)
    with pytest.raises(ConfigError, match=r"--kv-memory asks for 2 GiB, .* 1 GiB left .*; lower it\.$"):
        size_cache(replace(config, kv_memory=2 * GIB), GIB, BLOCK, 100_000)


def test_the_hosts_memory_is_asked_for_half_a_gibibyte() -> None:
    blocks, _ = size_cache(EngineConfig(max_batch=1000, step_budget=1000), None, BLOCK, 100_000)
    assert blocks == 512


def test_a_device_that_runs_out_of_memory_says_what_to_lower() -> None:
    with pytest.raises(ConfigError, match=r"lower --kv-memory.*q4\.$"), enough_memory():
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB.")
    with pytest.raises(RuntimeError, match="something else"), enough_memory():
        raise RuntimeError("something else")
