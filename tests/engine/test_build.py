"""Options that do not fit the machine or the model are told apart in one sentence; sizes follow from what fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from fakes import FLAT, RandomCheckpoint, make_request, run

from paceline.engine.build import build_engine, guess_limit, row_limit
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.errors import ConfigError
from paceline.engine.model.decoder import cache_shape
from paceline.engine.request import Speculation
from paceline.kernels import backend
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import StepCost, Work
from paceline.spec.drafters import Drafters
from paceline.spec.suffix import Suffix

CONTEXT = 512


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(31, context_length=CONTEXT)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def block_bytes(checkpoint: RandomCheckpoint) -> int:
    return backend.load().block_bytes(cache_shape(checkpoint.config))


def build(checkpoint: RandomCheckpoint, *, measured: bool = False, **options: object) -> Engine:
    config = EngineConfig(**{"device": "cpu", **options})  # type: ignore[arg-type]
    return build_engine(checkpoint, config, cost=None if measured else StepCost(FLAT))


def refusal(checkpoint: RandomCheckpoint, **options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        build(checkpoint, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_memory_that_does_not_do_is_said_in_one_sentence(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*given: object, **named: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB.")

    monkeypatch.setattr("paceline.kernels.reference.allocate", out_of_memory)
    assert "lower --kv-memory" in refusal(checkpoint, backend="reference")


def test_a_default_engine_serves(checkpoint: RandomCheckpoint) -> None:
    engine = build(checkpoint, measured=True)
    assert engine.speculators == ("auto", "suffix", "grammar", "none")
    assert (engine.context_length, engine.vocab_size) == (CONTEXT, 31)
    assert run(engine, [make_request("r", [1, 2, 3], max_tokens=5)]).finish("r") == "length"


def test_an_unknown_speculator_is_refused_with_the_known_ones_before_weights_are_packed(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(*_: object, **__: object) -> None:
        raise AssertionError("the model was packed")

    monkeypatch.setattr("paceline.engine.build.Decoder", pack)
    message = refusal(checkpoint, speculator="medusa")
    assert "'medusa'" in message
    assert "auto, none, suffix" in message


@pytest.mark.parametrize(("name", "modes"), [("none", ("auto", "none")), ("suffix", ("auto", "suffix", "none"))])
def test_the_speculator_decides_what_requests_may_ask_for(
    checkpoint: RandomCheckpoint, name: str, modes: tuple[str, ...]
) -> None:
    engine = build(checkpoint, speculator=name)
    assert engine.speculators == modes
    replies = run(engine, [make_request("r", [1, 2, 3] * 9, max_tokens=30, logit_bias={4: 100.0})])
    assert any(delta.drafted for delta in replies.deltas["r"]) == (name != "none")


def test_a_context_the_model_was_not_made_for_is_refused_before_anything_is_made(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*_: object, **__: object) -> None:
        raise AssertionError("a backend was made")

    monkeypatch.setattr(backend, "load", make)
    assert f"made for {CONTEXT} tokens" in refusal(checkpoint, context_length=CONTEXT + 1)


def test_a_context_that_was_asked_for_must_fit_the_memory(checkpoint: RandomCheckpoint) -> None:
    memory = 31 * block_bytes(checkpoint)
    message = refusal(checkpoint, context_length=CONTEXT, kv_memory=memory)
    assert f"context of {CONTEXT} tokens" in message
    assert "--kv-memory" in message
    assert "--context-length" in message
    assert (
        build(checkpoint, context_length=CONTEXT, kv_memory=memory + block_bytes(checkpoint)).context_length == CONTEXT
    )


def test_a_context_that_was_not_asked_for_shrinks_to_the_memory(checkpoint: RandomCheckpoint) -> None:
    engine = build(checkpoint, kv_memory=5 * block_bytes(checkpoint) + 1)
    assert engine.context_length == 5 * BLOCK_SIZE
    replies = run(engine, [make_request("r", [1, 2], max_tokens=1000)])  # to the last slot
    assert (replies.finish("r"), len(replies.tokens("r"))) == ("length", 5 * BLOCK_SIZE - 2)


def test_a_context_beyond_the_models_is_refused(checkpoint: RandomCheckpoint) -> None:
    assert f"made for {CONTEXT} tokens" in refusal(checkpoint, context_length=CONTEXT + 1)
    assert build(checkpoint, context_length=CONTEXT).context_length == CONTEXT
    assert build(checkpoint, context_length=100).context_length == 100


@pytest.mark.parametrize("bytes_", [1, 100])
def test_too_little_memory_is_refused(checkpoint: RandomCheckpoint, bytes_: int) -> None:
    message = refusal(checkpoint, kv_memory=bytes_)
    assert f"--kv-memory allows {bytes_ / 2**20:.3g} MiB" in message
    assert f"need {2 * block_bytes(checkpoint) / 2**20:.3g} MiB" in message
    build(checkpoint, kv_memory=2 * block_bytes(checkpoint))


def test_no_more_memory_than_a_full_batch_needs(checkpoint: RandomCheckpoint) -> None:
    engine = build(checkpoint, speculator="none", kv_memory=1 << 50, max_batch=2)
    assert engine.stats().blocks_total == 2 * CONTEXT // BLOCK_SIZE


def test_room_for_guesses_comes_on_top(checkpoint: RandomCheckpoint) -> None:
    """What sequences and prefixes can hold is the same with a drafter and without."""
    options: dict[str, object] = {"kv_memory": 40 * block_bytes(checkpoint), "max_batch": 4, "max_nodes": 20}
    plain, guessing = build(checkpoint, speculator="none", **options), build(checkpoint, **options)
    assert plain.stats().blocks_total == 40
    assert guessing.stats().blocks_total == 40 + 4 * (2 + 1)
    seqs = [engine.scheduler.submit(make_request("r", [1])) for engine in (plain, guessing)]
    assert plain.pages.room(seqs[0]) == guessing.pages.room(seqs[1]) == 40 * BLOCK_SIZE


@pytest.mark.usefixtures("threads")
def test_threads_are_set_when_asked_for(checkpoint: RandomCheckpoint) -> None:
    torch.set_num_threads(1)
    build(checkpoint)
    assert torch.get_num_threads() == 1
    build(checkpoint, threads=2)
    assert torch.get_num_threads() == 2


def test_guesses_of_a_request_are_bounded_by_engine_request_and_mode() -> None:
    drafters = Drafters([Suffix()])
    base = make_request("r", [1])

    def limit(engine_nodes: int, **speculation: object) -> int:
        return guess_limit(drafters, engine_nodes, replace(base, speculation=Speculation(**speculation)))  # type: ignore[arg-type]

    assert limit(16) == 15
    assert limit(16, max_nodes=4) == 3
    assert limit(4, max_nodes=16) == 3
    assert limit(16, max_nodes=1) == limit(1) == 0
    assert limit(16, mode="none") == 0
    assert limit(16, mode="suffix") == 15
    assert guess_limit(Drafters(), 16, base) == 0


@pytest.mark.parametrize(
    ("points", "decoding", "budget", "rows"),
    [
        pytest.param({1: 1.0, 100: 100.0}, 4, 500, 4, id="proportional: as many again"),
        pytest.param({1: 5.0, 1000: 5.0}, 4, 500, 500, id="flat: the whole budget"),
        pytest.param({1: 1.0, 2: 50.0}, 1, 500, 0, id="steep: none"),
        pytest.param({1: 10.0, 10: 10.0, 20: 20.0, 40: 40.0}, 2, 500, 18, id="flat, then proportional"),
        pytest.param({1: 5.0, 1000: 5.0}, 4, 7, 7, id="never beyond the budget"),
    ],
)
def test_prefill_rows_beside_streams_follow_the_cost_curve(
    points: dict[int, float], decoding: int, budget: int, rows: int
) -> None:
    streams = Work(decoding)
    assert row_limit(StepCost(points), {1: streams}, 1, streams, 0, budget) == rows


def test_prefill_rows_behind_a_long_context_are_fewer() -> None:
    cost, streams = StepCost({1: 10.0, 40: 40.0}, 0.001, 0.001), Work(1)
    rows = [row_limit(cost, {1: streams}, 1, streams, context, 500) for context in (0, 1000, 2000)]
    assert rows == sorted(rows, reverse=True)
    assert cost.ms(streams.beside(1000, rows[1])) <= 2 * cost.ms(streams) < cost.ms(streams.beside(1000, rows[1] + 1))
