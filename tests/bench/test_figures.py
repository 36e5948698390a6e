"""The arithmetic of the benchmark programs, and that the names they give to ops are right."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tiny_models

from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.kernels.native import isa
from paceline.server.bench_client import Reply


@pytest.fixture(autouse=True)
def _bench_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs import each other by name; for no longer than a test may they be found by name."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest.fixture
def figures() -> ModuleType:
    return importlib.import_module("native_figures")


@pytest.fixture
def peers() -> ModuleType:
    return importlib.import_module("peers")


def test_values_add_up_by_name(figures: ModuleType) -> None:
    assert figures.sum_by_kind(["a", "b", "a"], [1, 2, 3]) == {"a": 4, "b": 2}


def test_ops_one_by_one_are_the_pass(figures: ModuleType, tmp_path: Path) -> None:
    """Names, bytes and results: measuring by kind must measure the same pass."""
    try:
        isa.load()
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))
    folder = tiny_models.make_folder(tmp_path / "model", "qwen3-tied")
    checkpoint = open_checkpoint(folder, tmp_path)
    native = figures.NativePass.build(checkpoint, EngineConfig(threads=1), slots=64, cache=tmp_path)
    model = checkpoint.config
    assert native.names.count("attention") == model.num_layers
    qkv = (model.num_heads + 2 * model.num_kv_heads) * model.head_dim * model.hidden_size
    width = np.dtype(np.float32).itemsize
    assert native.weight_bytes["qkv"] == model.num_layers * qkv * width
    assert native.weight_bytes["down"] == model.num_layers * model.intermediate_size * model.hidden_size * width
    assert native.slot_bytes == 2 * 2 * model.num_layers * model.num_kv_heads * model.head_dim  # f16 keys and values

    native.fill(20)
    batch = native.batch(3, 20, sampled=3)
    logits = native.forward(batch)[0]  # a view of the pass's own memory
    whole = logits.copy()
    native.forward(native.batch(3, 23, sampled=3))  # other values in all buffers
    assert not np.array_equal(logits, whole)
    assert set(native.op_ms(batch)) == set(figures.op_names(1))
    assert np.array_equal(logits, whole)


def test_contenders_take_turns(peers: ModuleType) -> None:
    assert [peers.turned("abc", turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert sorted(peers.turned("abc", 2)) == ["a", "b", "c"]


def test_a_ratio_needs_both_figures(peers: ModuleType) -> None:
    assert peers.middle_ratio([(4.0, 2.0), (None, 1.0), (9.0, 3.0), (8.0, 2.0)]) == 3.0
    assert peers.middle_ratio([(1.0, None)]) == ""


def test_cached_tokens_are_no_prefill(peers: ModuleType) -> None:
    reply = Reply(ttft=0.5, end=1.0, prompt_tokens=500, cached_tokens=100)
    assert peers.prefill_rate(reply) == 800.0
    assert peers.prefill_rate(Reply(ttft=0.5, prompt_tokens=500, error="refused")) is None


@pytest.mark.parametrize(
    ("a", "b", "length"), [([1, 2, 3], [1, 2, 4], 2), ([1], [1, 2], 1), ([], [1], 0), ([2], [1], 0)]
)
def test_replies_part_where_tokens_differ(a: list[int], b: list[int], length: int) -> None:
    assert importlib.import_module("quality").common(a, b) == length
