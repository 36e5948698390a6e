"""A recorded pass computes what the reference computes, whatever buffers its values share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from fakes import RandomCheckpoint
from jobs import Job, branching, chain, tables
from matrices import matrix_of
from native_ops import Floats, batch_of, rows_only
from numpy.typing import NDArray

from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.kernels import backend
from paceline.kernels.backend import Ops, Options
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache.reference import allocate
from paceline.kernels.linear import Norm
from paceline.kernels.native import isa
from paceline.kernels.native.packing import Packer
from paceline.kernels.native.recorder import Recorder
from paceline.kernels.native.store import MemoryStore

VOCAB, CONTEXT = 61, 400
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "plain": {},
    "bias and head norms": {"qkv_bias": True, "qk_norm": True},
    "tied": {"tie_embeddings": True},
    "odd sizes": {"hidden_size": 50, "intermediate_size": 37, "num_heads": 3, "num_kv_heads": 1, "head_dim": 80},
    "one head each": {"num_heads": 2, "num_kv_heads": 2, "head_dim": 32},
}


@pytest.fixture
def ops(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Ops:
    monkeypatch.setenv(isa.VARIABLE, module.__name__.rpartition("_")[2])
    return backend.load("native", Options(threads=2))


def checkpoint_of(variant: str) -> RandomCheckpoint:
    checkpoint = RandomCheckpoint(VOCAB, CONTEXT)
    checkpoint.config = replace(  # type: ignore[misc]
        checkpoint.config,
        **{"num_layers": 3, "head_dim": 16, **VARIANTS[variant]},  # type: ignore[arg-type]
    )
    return checkpoint


def normal(size: int, rng: torch.Generator) -> Floats:
    return torch.randn(size, generator=rng).numpy()


def random_ids(rows: int, rng: torch.Generator) -> NDArray[np.int64]:
    return torch.randint(VOCAB, (rows,), generator=rng).numpy()


def random_batch(jobs: list[Job], rng: torch.Generator) -> Batch:
    batch = batch_of(jobs, tables(jobs, 60, rng), sampled=[0, sum(job.rows for job in jobs) - 1])
    return batch._replace(ids=random_ids(len(batch.ids), rng))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_decoder_of_three_layers_equals_the_reference(ops: Ops, variant: str) -> None:
    """The reference keeps its cache in halves too; then only the order of additions differs."""
    checkpoint = checkpoint_of(variant)
    config = checkpoint.config
    weights = checkpoint.load()
    rng = torch.Generator().manual_seed(3)
    for layer in weights.layers:  # norms are no ones, so that leaving one out shows
        layer.attn_norm, layer.ffn_norm = (1 + 0.3 * normal(config.hidden_size, rng) for _ in range(2))
        if config.qk_norm:
            layer.q_norm, layer.k_norm = (1 + 0.3 * normal(config.head_dim, rng) for _ in range(2))
        if config.qkv_bias:
            layer.qkv_bias = normal(config.q_rows + 2 * config.kv_rows, rng)
    models = []
    for table in (ops, backend.load("reference")):
        decoder = Decoder(config, weights, table, context_length=CONTEXT)
        table.finish()
        models.append(decoder)
    shape = cache_shape(config)
    caches = ops.allocate(shape, 60), allocate(shape, 60, torch.float16, torch.device("cpu"))
    for jobs in (
        [chain(0, 1)],
        [chain(0, 70), chain(0, 9)],
        [branching(70, 12, rng), chain(9, 1)],
        [chain(0, 300)],
        [chain(300, 3), branching(20, 64, rng)],
    ):
        batch = random_batch(jobs, rng)
        (logits, hidden), (want_logits, want_hidden) = (
            decoder.forward(batch, cache) for decoder, cache in zip(models, caches, strict=True)
        )
        assert logits.dtype == hidden.dtype == np.float32
        # A key between two halves is rounded one way here and the other way there: then a few values move by more.
        for got, want in ((torch.from_numpy(hidden), want_hidden), (torch.from_numpy(logits), want_logits)):
            torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
            assert (got - want).abs().median() < 1e-4 * want.abs().max()


def test_features_change_no_bit_of_the_logits(ops: Ops) -> None:
    """With and without, over chunks and trees; the features themselves are near the reference's."""
    checkpoint = checkpoint_of("plain")
    config, weights = checkpoint.config, checkpoint.load()
    rng = torch.Generator().manual_seed(8)
    matrices = [
        {layers: torch.randn(width, config.hidden_size, generator=rng) for layers in taps}
        for taps, width in (((0, 1, 3), 40), ((3,), 7), ((2, 0), 16))
    ]

    def decoder_on(table: Ops, taps: list[dict[int, torch.Tensor]]) -> Decoder:
        features = [{n: table.pack(matrix_of(matrix), form="f32") for n, matrix in each.items()} for each in taps]
        return Decoder(config, weights, table, context_length=CONTEXT, features=features)

    shape = cache_shape(config)
    reference = decoder_on(backend.load("reference"), matrices)
    exact = allocate(shape, 60, torch.float16, torch.device("cpu"))
    plain, tapped = decoder_on(ops, []), decoder_on(ops, matrices)
    caches = [ops.allocate(shape, 60) for _ in range(2)]
    for jobs in ([chain(0, 70), chain(0, 1)], [branching(70, 12, rng), chain(1, 9)], [chain(82, 1)]):
        batch = random_batch(jobs, rng)
        bare = [result.copy() for result in plain.forward(batch, caches[0])]
        logits, hidden, *features = tapped.forward(batch, caches[1])
        for got, want in zip((logits, hidden), bare, strict=True):
            assert got.tobytes() == want.tobytes()
        for got, want in zip(features, reference.forward(batch, exact)[2:], strict=True):
            assert got.shape == tuple(want.shape)
            torch.testing.assert_close(torch.from_numpy(got), want, rtol=2e-2, atol=0.2)
            assert (torch.from_numpy(got) - want).abs().median() < 1e-4 * want.abs().max()


def test_each_cache_has_a_program_of_its_own(ops: Ops) -> None:
    """The same pass over two caches, in turn: neither sees the other's keys."""
    checkpoint = checkpoint_of("plain")
    decoder = Decoder(checkpoint.config, checkpoint.load(), ops, context_length=CONTEXT)
    rng = torch.Generator().manual_seed(1)
    caches = [ops.allocate(cache_shape(checkpoint.config), 60) for _ in range(2)]
    prompts = [rows_only(20, [19])._replace(ids=random_ids(20, rng)) for _ in range(2)]
    following = batch_of([chain(20, 1)], [[0, 1]])._replace(ids=np.array([3]))
    alone = []
    for prompt in prompts:
        fresh = ops.allocate(cache_shape(checkpoint.config), 60)
        decoder.forward(prompt, fresh)
        alone.append(decoder.forward(following, fresh)[0].copy())
    for prompt, cache in zip(prompts, caches, strict=True):
        decoder.forward(prompt, cache)
    for _ in range(2):
        for cache, want in zip(caches, alone, strict=True):
            assert np.array_equal(decoder.forward(following, cache)[0], want)
    assert not np.array_equal(*alone)


class Bench:
    """A recorder and weights without a model."""

    def __init__(self, module: ModuleType) -> None:
        self.recorder = Recorder(module, module.Pool(1))
        self.packer = Packer(module, MemoryStore())
        self.rng = torch.Generator().manual_seed(6)

    def matrix(self, outputs: int, inputs: int) -> torch.Tensor:
        return torch.randn(outputs, inputs, generator=self.rng) / inputs**0.5

    def run(self, forward: Any, rows: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
        logits, hidden = self.recorder.compile(forward)(rows_only(rows), None)
        return torch.from_numpy(logits.copy()), torch.from_numpy(hidden.copy())


@pytest.fixture
def bench(module: ModuleType) -> Bench:
    return Bench(module)


def test_values_that_are_alive_never_share_a_buffer(bench: Bench) -> None:
    """A tangle of values, some kept to the end, some dropped at once, against the same formulas in torch."""
    table = bench.matrix(5, 24)
    squares = [bench.matrix(24, 24) for _ in range(6)]
    packed = [bench.packer.pack(matrix_of(square)) for square in squares]
    table_packed, recorder = bench.packer.pack(matrix_of(table)), bench.recorder
    scale = torch.rand(24, generator=bench.rng) + 0.5
    norm = Norm(scale.numpy(), 1e-5)

    def forward(batch: Batch, cache: Any) -> Any:
        x = recorder.embed(table_packed, batch.ids)
        first = recorder.linear(x, packed[0])
        for weight in packed[1:]:
            first = recorder.linear(recorder.linear(first, weight, norm=norm), packed[0], residual=first)
        second = recorder.linear(x, packed[1], residual=x)  # x is read by all while it is added
        third = recorder.linear(first, packed[2])
        fourth = recorder.linear(second, packed[3], residual=third)
        hidden = recorder.select(fourth, batch.sampled)
        return recorder.linear(hidden, packed[4], residual=recorder.select(first, batch.sampled)), hidden

    def normed(y: torch.Tensor) -> torch.Tensor:
        return y / (y.square().mean(-1, keepdim=True) + norm.eps).sqrt() * scale

    logits, hidden = bench.run(forward)
    x = table
    first = x @ squares[0].T
    for square in squares[1:]:
        first = first + normed(first) @ square.T @ squares[0].T
    second = x @ squares[1].T + x
    want_hidden = second @ squares[3].T + first @ squares[2].T
    torch.testing.assert_close(hidden, want_hidden, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(logits, want_hidden @ squares[4].T + first, rtol=1e-4, atol=1e-4)


def test_every_result_is_seen_by_its_own_number_of_rows(bench: Bench) -> None:
    """Values kept early in a pass survive what is computed after them, and each call gives those of its batch."""
    matrix, table = bench.matrix(24, 24), bench.matrix(40, 24)
    weight, packed, recorder = bench.packer.pack(matrix_of(matrix)), bench.packer.pack(matrix_of(table)), bench.recorder

    def forward(batch: Batch, cache: Any) -> Any:
        x = recorder.embed(packed, batch.ids)
        early = recorder.linear(x, weight)
        y = early
        for _ in range(5):
            y = recorder.linear(y, weight)
        few = recorder.select(y, batch.sampled)
        return recorder.linear(few, weight), few, early, recorder.select(x, batch.sampled), y

    run = recorder.compile(forward)
    for rows, sampled in ((6, [5]), (1, [0, 0]), (33, [3, 8, 20]), (4, [])):
        results = [torch.from_numpy(result.copy()) for result in run(rows_only(rows, sampled), None)]
        x = table[:rows]
        early = x @ matrix.T
        last = early @ torch.linalg.matrix_power(matrix.T, 5)
        wanted = (last[sampled] @ matrix.T, last[sampled], early, x[sampled], last)
        for got, want in zip(results, wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_a_result_that_was_overwritten_is_an_error(bench: Bench) -> None:
    weight = bench.packer.pack(matrix_of(bench.matrix(24, 24)))
    table = bench.packer.pack(matrix_of(bench.matrix(5, 24)))

    def forward(batch: Batch, cache: Any) -> Any:
        x = bench.recorder.embed(table, batch.ids)
        return bench.recorder.linear(bench.recorder.linear(x, weight), weight, residual=x), x

    with pytest.raises(RuntimeError, match="this value is gone"):
        bench.run(forward)


def test_buffers_are_used_again(bench: Bench) -> None:
    """Twenty products in a row need as many buffers as two."""
    weight = bench.packer.pack(matrix_of(bench.matrix(24, 24)))
    table = bench.packer.pack(matrix_of(bench.matrix(5, 24)))
    buffers: set[int] = set()

    def forward(batch: Batch, cache: Any) -> Any:
        x = bench.recorder.embed(table, batch.ids)
        for _ in range(20):
            x = bench.recorder.linear(x, weight)
            buffers.add(x.buffer)
        hidden = bench.recorder.select(x, batch.sampled)
        return hidden, hidden

    bench.run(forward)
    assert len(buffers) == 2


def test_a_value_that_was_overwritten_cannot_be_read(bench: Bench) -> None:
    weight = bench.packer.pack(matrix_of(bench.matrix(24, 24)))
    table = bench.packer.pack(matrix_of(bench.matrix(5, 24)))
    recorder = bench.recorder

    def forward(batch: Batch, cache: Any) -> Any:
        x = recorder.embed(table, batch.ids)
        total = recorder.linear(recorder.linear(x, weight), weight, residual=x)
        for read in (
            lambda: recorder.linear(x, weight),
            lambda: recorder.select(x, batch.sampled),
            lambda: recorder.linear(total, weight, residual=x),
        ):
            with pytest.raises(RuntimeError, match="this value is gone"):
                read()
        hidden = recorder.select(total, batch.sampled)
        return hidden, hidden

    assert torch.isfinite(bench.run(forward)[0]).all()


def test_ops_outside_of_a_recording_are_an_error(bench: Bench) -> None:
    table = bench.packer.pack(matrix_of(bench.matrix(5, 24)))
    with pytest.raises(RuntimeError, match="call them inside a function given to `compile`"):
        bench.recorder.embed(table, np.zeros(1, np.int64))

    def failing(batch: Batch, cache: Any) -> Any:
        bench.recorder.embed(table, batch.ids)
        raise LookupError("of the model's own")

    with pytest.raises(LookupError):
        bench.run(failing)
    with pytest.raises(RuntimeError, match="inside a function"):  # and the recording is over
        bench.recorder.embed(table, np.zeros(1, np.int64))


def test_a_batch_that_does_not_fit_leaves_the_pass_usable(bench: Bench) -> None:
    table = bench.packer.pack(matrix_of(bench.matrix(5, 24)))

    def forward(batch: Batch, cache: Any) -> Any:
        hidden = bench.recorder.select(bench.recorder.embed(table, batch.ids), batch.sampled)
        return hidden, hidden

    run = bench.recorder.compile(forward)
    good = rows_only(5)
    want = run(good, None)[0].copy()
    with pytest.raises(ValueError, match="outside of the vocabulary"):
        run(good._replace(ids=np.full(5, 5)), None)
    with pytest.raises(TypeError, match="ids must be a contiguous array of int64"):
        run(good._replace(ids=good.ids.astype(np.int32)), None)
    assert np.array_equal(run(good, None)[0], want)
    none = run(good._replace(sampled=np.zeros(0, np.int64)), None)[0]
    assert none.shape == (0, 24)
    assert np.array_equal(run(rows_only(2), None)[0], want[:2])
