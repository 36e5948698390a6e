"""The native kernels one op at a time: programs of a few ops, fed with any activations, and what they round.

A program has no inputs but token ids, so activations come in as a float32 table that is embedded at 0 … R - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jobs import Job, chain, layout_of, new_slots
from matrices import matrix_of
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.linear import Matrix, Norm
from paceline.kernels.native.packing import PackedWeight, Packer
from paceline.kernels.native.recorder import OUTLIER, arrays
from paceline.kernels.native.store import MemoryStore
from paceline.kernels.paging import BLOCK_SIZE

Floats = NDArray[np.float32]
QUANTISED = {"q4": 32, "q4_128": 128, "q8": 32, "q8_128": 128}  # inputs that share a scale
FLOATING = ("f32", "f16", "bf16")
FORMATS = (*QUANTISED, *FLOATING)
KV = ("f16", "int8")
GROUP = 32  # inputs of an activation that share a scale
ARRAYS = (
    *("ids", "positions", "slots", "sampled"),
    *("row_starts", "context_lens", "block_tables", "causal", "ancestors", "features"),
)


def batch_of(jobs: Sequence[Job], owned: Sequence[Sequence[int]], sampled: Sequence[int] | None = None) -> Batch:
    """Rows with the ids 0 … R - 1; all of them sampled unless said otherwise."""
    rows = np.arange(sum(job.rows for job in jobs))
    return Batch(
        ids=rows,
        positions=np.array([position for job in jobs for position in job.positions]),
        slots=np.array(new_slots(jobs, owned)),
        sampled=rows if sampled is None else np.array(sampled, np.int64),
        layout=layout_of(jobs, owned),
    )


def rows_only(rows: int, sampled: Sequence[int] | None = None) -> Batch:
    """A chain where nothing but the number of rows matters."""
    return batch_of([chain(0, rows)], [range(-(-rows // BLOCK_SIZE))], sampled)


@dataclass
class Program:
    """A native program under construction; `values` are numbered by the module."""

    module: ModuleType
    pool: Any
    activations: str = "mixed"
    native: Any = field(init=False)
    kept: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.native = self.module.Program(self.pool, OUTLIER[self.activations])

    def feed(self, x: Floats) -> int:
        """x [R, width], read by any batch of at most R rows."""
        table = pack(self.module, torch.from_numpy(np.ascontiguousarray(x)))
        self.kept.append(table)
        value: int = self.native.value(x.shape[1], False)
        self.native.embed(table.handle, value)
        return value

    def linear(
        self,
        x: int,
        weight: PackedWeight,
        *,
        norm: Floats | None = None,
        eps: float = 0.0,
        residual: int = -1,
        gate: bool = False,
        silu: bool = False,
        sampled: bool = False,
    ) -> int:
        out: int = self.native.value(weight.width, sampled)
        self.native.linear(x, weight.handle, norm, eps, residual, gate, silu, out)
        self.kept.append(weight)
        return out

    def run(self, batch: Batch) -> None:
        self.native.run(arrays(batch), 0, len(self.native), 1)

    def read(self, value: int, rows: int) -> Floats:
        """A copy: the module's memory is only valid until the next run."""
        view: Floats = self.native.view(value, rows)
        return view.copy()


def pack(
    module: ModuleType,
    matrix: torch.Tensor | Matrix,
    weights: str = "stored",
    bias: Floats | None = None,
    *,
    gate: bool = False,
    form: str | None = None,
) -> PackedWeight:
    source: Matrix = matrix_of(matrix) if isinstance(matrix, torch.Tensor) else matrix
    return Packer(module, MemoryStore(), weights).pack(source, bias, gate=gate, form=form)


def unpacked(module: ModuleType, weight: PackedWeight, *, gate: bool = False) -> Floats:
    """The values a packed weight holds, [N, K]; gated halves one after the other again."""
    rows: Floats = module.unpack(weight.handle, 0, weight.handle.outputs)
    if not gate:
        return rows
    pairs = rows.reshape(-1, 2, BLOCK_SIZE, rows.shape[1])  # blocks of sixteen outputs alternate
    halves = pairs.swapaxes(0, 1).reshape(2, -1, rows.shape[1])
    return np.concatenate((halves[0, : weight.width], halves[1, : weight.width]))


def linear(
    module: ModuleType,
    pool: Any,
    x: Floats,
    weight: PackedWeight,
    *,
    norm: Floats | None = None,
    eps: float = 0.0,
    residual: Floats | None = None,
    gate: bool = False,
    silu: bool = False,
    activations: str = "mixed",
) -> Floats:
    """One `linear` on its own: x [R, K] -> [R, N], or [R, N / 2] when gated."""
    program = Program(module, pool, activations)
    given = program.feed(x)
    added = -1 if residual is None else program.feed(residual)
    out = program.linear(given, weight, norm=norm, eps=eps, residual=added, gate=gate, silu=silu)
    program.run(rows_only(len(x)))
    return program.read(out, len(x))


def groups_of(x: Floats) -> Floats:
    """x [R, K] -> [R, groups, 32], padded with zeros."""
    rows, inputs = x.shape
    padded = np.zeros((rows, -(-inputs // GROUP), GROUP), np.float32)
    padded.reshape(rows, -1)[:, :inputs] = x
    return padded


def outliers(x: Floats) -> NDArray[np.bool_]:
    """[R, inputs]: which values stay floats: those above `OUTLIER` times the root mean square of their row.

    The kernels add squares in another order: a value too near to the border to tell is an error of the test's.
    """
    with np.errstate(over="ignore"):
        mean_square = (x * x).sum(-1, keepdims=True) / np.float32(x.shape[1])
    border = np.where(mean_square < 1e-37, np.inf, np.float32(OUTLIER["mixed"]) * np.sqrt(mean_square))
    assert not (np.isfinite(border) & (abs(abs(x) - border) < 1e-5 * border)).any()
    return abs(x) > border


def rounded_rows(x: Floats, activations: str = "mixed") -> Floats:
    """Activations as products with quantised weights read them: one scale per row and 32 inputs, one byte or two.

    The high byte counts steps of 1/127 of the group's largest magnitude, the low one 256ths of a step. Outliers of
    mixed ones stay as they are and count for no magnitude.
    """
    rows, inputs = x.shape
    apart = np.where(outliers(x), x, np.float32(0)) if activations == "mixed" else np.zeros_like(x)
    padded = groups_of(x - apart)
    largest = np.abs(padded).max(-1, keepdims=True)
    inverse = np.divide(np.float32(127), largest, where=largest >= 1e-30, out=np.zeros_like(largest))
    scaled = padded * inverse
    high = np.minimum(np.rint(scaled), 127)
    low = np.clip(np.rint((scaled - high) * 256), -127, 127) * (activations == "int16")
    whole = (256 * high + low).astype(np.float64)
    steps = (whole * (largest / np.float32(127) / np.float32(256))).reshape(rows, -1)[:, :inputs]
    return steps.astype(np.float32) + apart


def rounded_int8(x: Floats) -> Floats:
    """Keys or values [..., D] as an int8 cache holds them: one scale per slot and head."""
    largest = np.abs(x).max(-1, keepdims=True)
    inverse = np.divide(np.float32(127), largest, where=largest > 0, out=np.zeros_like(largest))
    return (np.minimum(np.rint(x * inverse), 127) * (largest / np.float32(127))).astype(np.float32)


def held(x: Floats, kv: str) -> torch.Tensor:
    """Keys or values as the cache rounds them."""
    return torch.from_numpy(x.astype(np.float16).astype(np.float32) if kv == "f16" else rounded_int8(x))


def with_outliers(random: np.random.Generator, rows: int, inputs: int) -> Floats:
    """[rows, inputs]: values between -2 and 2, and in about every third group of 32 one of twenty."""
    x = random.uniform(-2, 2, (rows, inputs)).astype(np.float32)
    for row in x:
        for start in range(0, inputs, GROUP):
            if random.random() < 1 / 3:
                row[random.integers(start, min(start + GROUP, inputs))] = random.choice((-20, 20))
    return x


def random_kv(blocks: int, heads: int, head_dim: int, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    k, v = (random.standard_normal((blocks * BLOCK_SIZE, heads, head_dim), np.float32) for _ in range(2))
    return k, v


def random_queries(jobs: list[Job], heads: int, head_dim: int, seed: int = 9) -> Floats:
    rows = sum(job.rows for job in jobs)
    return np.random.default_rng(seed).standard_normal((rows, heads, head_dim), np.float32) * 2


def rms_normed(x: Floats, weight: Floats, eps: float) -> Floats:
    """In float64, then rounded once."""
    wide = x.astype(np.float64)
    normed = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight
    return normed.astype(np.float32)


def identity_rotation(module: ModuleType, positions: int, head_dim: int) -> Any:
    ones = np.ones(positions * head_dim // 2, np.float32)
    return module.Rotation(ones, np.zeros_like(ones), positions)


class Attention:
    """A cache of one layer that holds given keys and values, and attention over it.

    k, v: [slots, Hkv, D], stored once through `rope_store` with angles of zero.
    """

    def __init__(self, module: ModuleType, pool: Any, kv: str, k: Floats, v: Floats) -> None:
        slots, self.kv_heads, self.head_dim = k.shape
        self._module, self._pool = module, pool
        self.cache = module.Cache(getattr(module.KvFormat, kv), 1, slots // BLOCK_SIZE, self.kv_heads, self.head_dim)
        self._rotation = identity_rotation(module, slots, self.head_dim)
        self._k, self._v = k, v
        queries = np.zeros_like(k)
        program = Program(module, pool)
        qkv = program.feed(np.concatenate((queries, k, v), axis=1).reshape(slots, -1))
        self._store(program, qkv)
        program.run(batch_of([chain(0, slots)], [range(slots // BLOCK_SIZE)]))

    def _store(self, program: Program, qkv: int) -> None:
        program.native.rope_store(qkv, self.cache, 0, self._rotation, None, 0.0, None, 0.0)

    def __call__(self, q: Floats, jobs: Sequence[Job], owned: Sequence[Sequence[int]]) -> Floats:
        """q [R, Hq, D] -> [R, Hq * D]; the rows' own keys and values are stored again, as a pass does."""
        rows, heads, _ = q.shape
        own = new_slots(jobs, owned)
        program = Program(self._module, self._pool)
        qkv = program.feed(np.concatenate((q, self._k[own], self._v[own]), axis=1).reshape(rows, -1))
        self._store(program, qkv)
        out = program.native.value(heads * self.head_dim, False)
        program.native.attention(qkv, self.cache, 0, out)
        program.run(batch_of(jobs, owned))
        return program.read(out, rows)


def eager(module: ModuleType, reference: Ops) -> Ops:
    """The native ops that need no cache, each run at once as a program of its own, behind the table of ops.

    Tensors of any dtype go in; the native kernels compute in float32. What needs a cache stays the reference's.
    """
    import dataclasses

    from paceline.kernels.backend import Options
    from paceline.kernels.native.ops import build

    pool = module.Pool(1)

    def eager_linear(
        x: torch.Tensor,
        weight: PackedWeight,
        *,
        norm: Norm | None = None,
        residual: torch.Tensor | None = None,
        gate: bool = False,
        silu: bool = False,
    ) -> torch.Tensor:
        y = linear(
            module,
            pool,
            x.float().numpy(),
            weight,
            norm=None if norm is None else norm.weight.float().numpy(),
            eps=0.0 if norm is None else norm.eps,
            residual=None if residual is None else residual.float().numpy(),
            gate=gate,
            silu=silu,
        )
        return torch.from_numpy(y).to(x.dtype)

    def eager_embed(table: PackedWeight, ids: torch.Tensor) -> torch.Tensor:
        program = Program(module, pool)
        out = program.native.value(table.inputs, False)
        program.native.embed(table.handle, out)
        batch = rows_only(len(ids))._replace(ids=ids.numpy())
        program.run(batch)
        return torch.from_numpy(program.read(out, len(ids)))

    def eager_select(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        program = Program(module, pool)
        given = program.feed(x.numpy())
        out = program.native.value(x.shape[1], True)
        program.native.select(given, out)
        program.run(rows_only(len(x), rows.tolist()))
        return torch.from_numpy(program.read(out, len(rows)))

    native = build(Options(threads=1))
    changes: dict[str, Callable[..., Any]] = {
        "pack": lambda matrix, bias=None, **options: pack(module, matrix, bias=bias, **options),
        "pack_table": lambda matrix, **options: pack(module, matrix, **options),
        "tied_head": native.tied_head,
        "embed": eager_embed,
        "select": eager_select,
        "linear": eager_linear,
        "constant": native.constant,
        "sample": native.sample,
        "rank": native.rank,
        "settle": native.settle,
        "host": native.host,
    }
    return dataclasses.replace(reference, name="native", **changes)
