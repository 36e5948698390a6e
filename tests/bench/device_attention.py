"""`rope_store` and `tree_attention` on the device: against float64, and a row against itself in other company."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from device_linear import BOUND, differing, largest_error
from device_tools import Check
from jobs import Job, attention, branching, chain, layout_of, slots_of, tables
from paged_caches import values

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.rope_store import Rotation
from paceline.kernels.rope_store.triton_impl import rope_store
from paceline.kernels.tree_attention.triton_impl import to_device, tree_attention
from paceline.kernels.tree_attention.work import plan

Case = Callable[[torch.device], Iterable[Check]]
_PROGRAMS = 64
# Of a stored value's error, as a share of the largest in its head: half a step of the format.
_STORED = {"int8": 0.51 / 127, "fp8": 0.51 / 14}


@dataclass(frozen=True)
class Heads:
    """group: query heads per key head."""

    group: int
    kv: int
    width: int

    def __str__(self) -> str:
        return f"{self.group * self.kv}/{self.kv} heads of {self.width}"


def attention_cases(interpreted: bool) -> dict[str, Case]:
    if interpreted:
        wanted = [(Heads(3, 1, 16), torch.float16, "auto")]
    else:
        wanted = [
            (Heads(3, 3, 64), torch.bfloat16, "auto"),
            (Heads(4, 8, 128), torch.bfloat16, "auto"),
            (Heads(1, 2, 64), torch.bfloat16, "auto"),
            (Heads(8, 2, 128), torch.bfloat16, "auto"),
            (Heads(4, 2, 128), torch.float16, "auto"),
            (Heads(4, 2, 128), torch.bfloat16, "fp8"),
            (Heads(4, 2, 128), torch.bfloat16, "int8"),
            (Heads(3, 3, 64), torch.float16, "int8"),
        ]
    cases: dict[str, Case] = {}
    for heads, dtype, form in wanted:
        name = f"{heads}, {str(dtype)[6:]}, cache {form}"
        cases[f"rope_store {name}"] = partial(_rope, heads=heads, dtype=dtype, form=form, name=name)
        cases[f"tree_attention {name}"] = partial(
            _attention, heads=heads, dtype=dtype, form=form, name=name, few=interpreted
        )
    return cases


def _angles(width: int, positions: int) -> torch.Tensor:
    """[positions, width / 2] in float64."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(positions, dtype=torch.float64)[:, None] * frequencies


def _rotation(angles: torch.Tensor, device: torch.device) -> Rotation:
    return Rotation(angles.cos().float().to(device), angles.sin().float().to(device))


def _held(side: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """What a side of a cache stands for in its first layer, [slots, Hkv, D] float64 on the CPU."""
    return values(side.cpu(), None if scale is None else scale.cpu())[0].double()


def _rope(device: torch.device, *, heads: Heads, dtype: torch.dtype, form: str, name: str) -> Iterator[Check]:
    rng = torch.Generator().manual_seed(1)
    rows, count = 19, (heads.group + 2) * heads.kv
    angles = _angles(heads.width, 400)
    qkv = torch.randn(rows, count * heads.width, generator=rng).to(dtype)
    positions = torch.randint(400, (rows,), generator=rng)
    slots = torch.randperm(4 * BLOCK_SIZE, generator=rng)[:rows]
    cache = allocate(CacheShape(1, heads.kv, heads.width), 4, form=form, dtype=dtype, device=device)
    q = rope_store(qkv.to(device), _rotation(angles, device), positions.to(device), slots.to(device), cache, 0).cpu()

    columns = qkv.double().view(rows, count, heads.width)
    half, turn = heads.width // 2, angles[positions][:, None]
    turned = torch.complex(columns[..., :half], columns[..., half:]) * torch.polar(torch.ones_like(turn), turn)
    turned = torch.cat((turned.real, turned.imag), -1)
    first = heads.group * heads.kv
    yield Check("rope_store", f"{name}, queries", largest_error(q, turned[:, :first]), BOUND[dtype])
    keys, stored = turned[:, first : first + heads.kv], _held(cache.k, cache.k_scale)[slots]
    yield Check("rope_store", f"{name}, keys", _stored_error(stored, keys, form), _STORED.get(form, BOUND[dtype]))
    given, stored = columns[:, first + heads.kv :], _held(cache.v, cache.v_scale)[slots]
    bound = _STORED.get(form, 0.0)  # values are stored as they are
    yield Check("rope_store", f"{name}, values", _stored_error(stored, given, form), bound)


def _stored_error(got: torch.Tensor, want: torch.Tensor, form: str) -> float:
    if form == "auto":
        return largest_error(got, want)
    return float(((got - want).abs() / want.abs().amax(-1, keepdim=True)).max())


def _jobs(few: bool, rng: torch.Generator) -> list[Job]:
    """Contexts on both sides of pages, tiles and groups of tiles."""
    if few:
        return [chain(15, 1), Job(14, 3, (-1, 0, 0))]
    return [
        chain(0, 1),
        chain(16, 1),
        *(chain(context, 1) for context in (63, 64, 65, 127, 128, 129, 511, 513, 1023, 1024, 1025)),
        chain(0, 70),
        chain(250, 20),
        branching(0, 64, rng),
        branching(120, 16, rng),
        branching(1019, 33, rng),
        Job(30, 64, tuple(range(-1, 63))),
        Job(3, 64, (-1, *[0] * 63)),
    ]


class _Sequences:
    """Jobs with the keys and values of all their slots."""

    def __init__(
        self,
        jobs: Sequence[Job],
        heads: Heads,
        dtype: torch.dtype,
        form: str,
        device: torch.device,
        rng: torch.Generator,
    ) -> None:
        self.jobs, self.heads, self.dtype, self.form, self.device = jobs, heads, dtype, form, device
        blocks = sum(-(-(job.context + job.rows) // BLOCK_SIZE) for job in jobs) + 3
        self.owned = tables(jobs, blocks, rng)
        width = heads.width
        self.k, self.v = (torch.randn(blocks * BLOCK_SIZE, heads.kv, width, generator=rng).to(dtype) for _ in range(2))
        self.q = torch.randn(sum(job.rows for job in jobs), heads.group * heads.kv, width, generator=rng).to(dtype)
        self.cache = self.stored(self.k, self.v)

    def stored(self, k: torch.Tensor, v: torch.Tensor) -> PagedCache:
        """A cache that holds k, v [slots, Hkv, D]; what is scaled is stored by the kernel for it, at an angle of 0."""
        slots, heads = len(k), self.heads
        shape = CacheShape(1, heads.kv, heads.width)
        cache = allocate(shape, slots // BLOCK_SIZE, form=self.form, dtype=self.dtype, device=self.device)
        if cache.k_scale is None:
            for side, given in ((cache.k, k), (cache.v, v)):
                side[0] = given.view(-1, BLOCK_SIZE, heads.kv, heads.width).transpose(1, 2).to(self.device)
            return cache
        queries = torch.zeros(slots, heads.group * heads.kv, heads.width, dtype=self.dtype)
        rows = torch.cat((queries, k, v), 1).flatten(1).to(self.device)
        still = _rotation(torch.zeros(1, heads.width // 2, dtype=torch.float64), self.device)
        index = torch.arange(slots, device=self.device)
        rope_store(rows, still, torch.zeros_like(index), index, cache, 0)
        return cache

    def rows_of(self, job: int) -> slice:
        first = sum(each.rows for each in self.jobs[:job])
        return slice(first, first + self.jobs[job].rows)

    def attend(
        self, jobs: Sequence[Job], owned: Sequence[Sequence[int]], q: torch.Tensor, cache: PagedCache, programs: int
    ) -> torch.Tensor:
        work = to_device(plan(layout_of(jobs, owned), programs=programs), self.device)
        return tree_attention(q.to(self.device), cache, 0, work).cpu()

    def along(self, job: int, node: int) -> tuple[PagedCache, int]:
        """A cache in which the nodes that lead to `node` stand in the slots of their positions; how many they are."""
        k, v, here = self.k.clone(), self.v.clone(), self.jobs[job]
        line = here.line(node)
        source = slots_of(self.owned[job], [here.context + each for each in line])
        target = slots_of(self.owned[job], range(here.context, here.context + len(line)))
        k[target], v[target] = self.k[source], self.v[source]
        return self.stored(k, v), len(line)


def _attention(
    device: torch.device, *, heads: Heads, dtype: torch.dtype, form: str, name: str, few: bool
) -> Iterator[Check]:
    rng = torch.Generator().manual_seed(2)
    jobs = _jobs(few, rng)
    all_ = _Sequences(jobs, heads, dtype, form, device, rng)
    whole = all_.attend(jobs, all_.owned, all_.q, all_.cache, _PROGRAMS)
    k, v = _held(all_.cache.k, all_.cache.k_scale), _held(all_.cache.v, all_.cache.v_scale)
    want = attention(all_.q, k, v, jobs, all_.owned)
    yield Check("tree_attention", f"{name}, {len(jobs)} sequences", largest_error(whole, want), BOUND[dtype])

    differ = sum(
        differing(all_.attend(jobs, all_.owned, all_.q, all_.cache, n), whole) for n in ((1,) if few else (1, 2048))
    )
    yield Check("tree_attention", f"{name}, rows that differ when split otherwise", differ, 0)
    differ = sum(
        differing(
            all_.attend([job], [all_.owned[i]], all_.q[all_.rows_of(i)], all_.cache, _PROGRAMS), whole[all_.rows_of(i)]
        )
        for i, job in enumerate(jobs)
    )
    yield Check("tree_attention", f"{name}, rows that differ alone", differ, 0)
    differ = 0
    for i, job in enumerate(jobs):
        if job.parents is not None:
            rows, node = all_.rows_of(i), max(range(job.rows), key=lambda each, job=job: len(job.line(each)))  # type: ignore[misc]
            cache, length = all_.along(i, node)
            mine = [rows.start + each for each in job.line(node)]
            prompt = all_.attend([chain(job.context, length)], [all_.owned[i]], all_.q[mine], cache, _PROGRAMS)
            plain = all_.attend(
                [chain(job.context + length - 1, 1)], [all_.owned[i]], all_.q[mine[-1:]], cache, _PROGRAMS
            )
            differ += differing(prompt, whole[mine]) + differing(plain, whole[mine[-1:]])
    yield Check("tree_attention", f"{name}, nodes that differ from plain decoding and prefill", differ, 0)
