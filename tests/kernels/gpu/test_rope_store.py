from __future__ import annotations

import pytest
import torch
from paged_caches import CPU, by_slot, filled, values

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate
from paceline.kernels.linear import Norm
from paceline.kernels.rope_store import Rotation
from paceline.kernels.rope_store.triton_impl import rope_store

BLOCKS = 3
SLOTS = BLOCKS * 16
SHAPES = [(1, 1, 1, 16), (2, 7, 1, 64), (3, 9, 3, 64), (2, 8, 2, 128), (3, 3, 3, 80), (2, 4, 2, 6), (1, 3, 2, 256)]


def rotation_of(head_dim: int, scale: float = 1.3) -> Rotation:
    frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.arange(400, dtype=torch.float64)[:, None] * frequencies
    return Rotation((angle.cos() * scale).float(), (angle.sin() * scale).float())


class Case:
    """Random rows for a model of this shape, each with a place of its own in the cache."""

    def __init__(
        self, rng: torch.Generator, shape: tuple[int, int, int, int], dtype: torch.dtype, *, norms: bool = False
    ) -> None:
        rows, self.heads, self.kv_heads, self.head_dim = shape
        self.qkv = torch.randn(rows, (self.heads + 2 * self.kv_heads) * self.head_dim, generator=rng).to(dtype)
        self.rotation = rotation_of(self.head_dim)
        self.positions = torch.randint(400, (rows,), generator=rng)
        self.slots = torch.randperm(SLOTS, generator=rng)[:rows]
        self.q_norm, self.k_norm = (
            Norm(torch.rand(self.head_dim, generator=rng) + 0.5, eps) if norms else None for eps in (1e-5, 1e-6)
        )

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(2, self.kv_heads, self.head_dim)

    def run(self, cache: PagedCache, at: slice | torch.Tensor = slice(None)) -> torch.Tensor:
        return rope_store(
            *(self.qkv[at].contiguous(), self.rotation, self.positions[at], self.slots[at], cache, 1),
            q_norm=self.q_norm,
            k_norm=self.k_norm,
        )

    def wanted(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries [R, Hq, D], keys and values [R, Hkv, D] in float64; a pair is a complex number that is turned."""
        q, k, v = (
            self.qkv.double()
            .view(len(self.qkv), -1, self.head_dim)
            .split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        )
        turn = torch.complex(self.rotation.cos.double(), self.rotation.sin.double())[self.positions].unsqueeze(1)
        turned = []
        for x, norm in ((q, self.q_norm), (k, self.k_norm)):
            if norm is not None:
                x = x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight.double()
            pairs = torch.complex(*x.chunk(2, dim=-1)) * turn
            turned.append(torch.cat((pairs.real, pairs.imag), dim=-1))
        return turned[0], turned[1], v


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_rotates_and_stores(
    rng: torch.Generator, shape: tuple[int, int, int, int], norms: bool, dtype: torch.dtype
) -> None:
    case = Case(rng, shape, dtype, norms=norms)
    cache = filled(case.cache_shape, BLOCKS, rng, dtype=dtype)
    before = [by_slot(side).clone() for side in (cache.k, cache.v)]
    q = case.run(cache)
    k, v = (by_slot(side)[1] for side in (cache.k, cache.v))
    want_q, want_k, want_v = case.wanted()
    # Rounded once: half a step of the dtype, and what float32 lost before.
    close: dict[str, float] = {"atol": 3e-6, "rtol": {torch.float32: 2e-6, torch.float16: 2**-11 + 2e-6}[dtype]}
    for got, want in ((q, want_q), (k[case.slots], want_k)):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), want, **close)
    assert torch.equal(v[case.slots].double(), want_v)
    others = torch.ones(SLOTS, dtype=torch.bool)
    others[case.slots] = False
    for side, old in zip((cache.k, cache.v), before, strict=True):
        assert torch.equal(by_slot(side)[0], old[0])  # the other layer
        assert torch.equal(by_slot(side)[1, others], old[1, others])


@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_cache_may_be_narrower_than_the_rows(rng: torch.Generator, form: str) -> None:
    case = Case(rng, (3, 4, 2, 64), torch.float32)
    wide, narrow = (
        allocate(case.cache_shape, BLOCKS, form=each, dtype=torch.float32, device=CPU) for each in ("auto", form)
    )
    assert torch.equal(case.run(wide), case.run(narrow))
    # Triton's interpreter cuts bfloat16 off, a GPU rounds.
    close = {"atol": 0.0, "rtol": {"f16": 0.0, "bf16": 2**-7}[form]}
    for full, rounded in ((wide.k, narrow.k), (wide.v, narrow.v)):
        torch.testing.assert_close(rounded, full.to(rounded.dtype), **close)


@pytest.mark.parametrize("shape", [(3, 3, 1, 64), (2, 4, 2, 80), (1, 16, 5, 128)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_int8_has_one_scale_per_slot_and_head(
    rng: torch.Generator, shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    case = Case(rng, shape, dtype)
    case.qkv[0, -case.head_dim :] = 0  # a value that has no magnitude
    wide = filled(case.cache_shape, BLOCKS, rng, form="auto")
    narrow = filled(case.cache_shape, BLOCKS, rng, form="int8")
    assert torch.equal(case.run(wide), case.run(narrow))
    sides = (wide.k, narrow.k, narrow.k_scale), (wide.v, narrow.v, narrow.v_scale)
    for full, pages, scale in sides:
        assert scale is not None
        want = by_slot(full)[1, case.slots]
        largest = want.abs().amax(-1)
        assert torch.equal(by_slot(scale)[1, case.slots], largest / 127)
        inverse = torch.where(largest > 0, 127 / largest, 0).double().unsqueeze(-1)
        assert torch.equal(by_slot(pages)[1, case.slots].double(), (want * inverse).round())
        error = (values(pages, scale)[1, case.slots] - want).abs().amax(-1)
        assert (error <= largest * (0.5001 / 127)).all()


def test_int8_rounds_half_to_even_and_survives_tiny_values() -> None:
    half_steps = torch.arange(-8, 8) + 0.5
    half_steps[0] = 127.0
    cache = allocate(CacheShape(1, 1, 16), 1, form="int8", dtype=torch.float32, device=CPU)
    qkv = torch.cat((torch.zeros(32), half_steps)).repeat(2, 1)
    qkv[1, 32:] *= 1e-40  # 127 over the largest is infinite
    rope_store(qkv, rotation_of(16), torch.zeros(2, dtype=torch.int64), torch.arange(2), cache, 0)
    assert torch.equal(cache.v[0, 0, 0, 0].float(), half_steps.round())
    assert not cache.v[0, 0, 0, 1].any()


def test_fp8_has_one_scale_per_slot_and_head(rng: torch.Generator) -> None:
    """Values that are fp8 numbers: Triton's interpreter rounds others in a way of its own, a GPU as torch does."""
    case = Case(rng, (4, 3, 2, 64), torch.float32)
    case.rotation = Rotation(torch.ones(400, 32), torch.zeros(400, 32))
    heads = (case.qkv.view(4, 7, 64) * 100).to(torch.float8_e4m3fn).float()
    heads[..., 5] = 448.0
    powers = 2.0 ** torch.randint(-9, 9, (4, 7, 1), generator=rng)
    case.qkv = (heads * powers).view(4, -1)
    cache = filled(case.cache_shape, BLOCKS, rng, form="fp8")
    case.run(cache)
    for pages, scale, at in ((cache.k, cache.k_scale, slice(3, 5)), (cache.v, cache.v_scale, slice(5, 7))):
        assert scale is not None
        assert torch.equal(by_slot(scale)[1, case.slots], powers[:, at, 0])
        assert torch.equal(by_slot(pages)[1, case.slots].float(), heads[:, at])


@pytest.mark.parametrize("form", ["auto", "int8"])
def test_padding_rows_store_nothing_and_change_nothing(rng: torch.Generator, form: str) -> None:
    case = Case(rng, (5, 3, 1, 64), torch.float16, norms=True)
    case.positions, case.slots = case.positions.int(), case.slots.int()
    alone, padded = (filled(case.cache_shape, BLOCKS, torch.Generator().manual_seed(3), form=form) for _ in range(2))
    rows = torch.tensor([0, 2, 3])
    q = case.run(alone, rows)
    case.positions[[1, 4]] = case.slots[[1, 4]] = -1
    with_padding = case.run(padded)
    assert torch.equal(with_padding[rows], q)
    assert with_padding.isfinite().all()
    for one, other in zip((alone.k, alone.v), (padded.k, padded.v), strict=True):
        assert torch.equal(one, other)
    if alone.k_scale is not None and padded.k_scale is not None:
        assert torch.equal(alone.k_scale, padded.k_scale)


@pytest.mark.parametrize("form", ["auto", "int8"])
def test_a_row_has_the_same_bits_alone_and_among_others(rng: torch.Generator, form: str) -> None:
    case = Case(rng, (7, 9, 3, 64), torch.float16, norms=True)
    together = filled(case.cache_shape, BLOCKS, torch.Generator().manual_seed(3), form=form)
    q = case.run(together)
    one_by_one = filled(case.cache_shape, BLOCKS, torch.Generator().manual_seed(3), form=form)
    for row in reversed(range(7)):
        assert torch.equal(case.run(one_by_one, slice(row, row + 1)), q[row : row + 1])
    assert torch.equal(together.k, one_by_one.k)
    assert torch.equal(together.v, one_by_one.v)
