"""Every Triton kernel against float64 or the plain reference, and the bits of a row against those of its neighbours.

Cases run in several processes: what takes time is compiling, and a kernel that breaks takes no other case with it.
"""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from device_attention import attention_cases
from device_linear import embed_cases, linear_cases
from device_tools import Check, Machine, is_usable
from device_workers import in_processes

from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate
from paceline.kernels.move_kv.triton_impl import move_kv, move_slots
from paceline.kernels.paging import slots_of
from paceline.kernels.rank.reference import rank as plain_rank
from paceline.kernels.rank.triton_impl import rank
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import sample as plain_sample
from paceline.kernels.sample.triton_impl import sample
from paceline.kernels.settle.triton_impl import settle
from paceline.spec.accept import walk
from paceline.spec.tree import TokenTree

Case = Callable[[torch.device], Iterable[Check]]
_PROCESSES = 8
_PATIENCE_S = 150


def checks(machine: Machine) -> Iterator[Check]:
    """All of them, in order; a case that breaks is one failed check."""
    names = list(cases(machine.interpreted))
    if machine.interpreted:
        for name in names:
            yield from run_case(name, True)[0]
    else:
        run = partial(run_case, interpreted=False)
        yield from in_processes(run, names, min(_PROCESSES, os.cpu_count() or 1), min(_PATIENCE_S, machine.left_s))


def run_case(name: str, interpreted: bool) -> tuple[list[Check], bool]:
    """Its checks, and whether this process can go on: after an access out of bounds CUDA refuses everything."""
    device = torch.device("cpu" if interpreted else "cuda")
    torch.set_num_threads(2)  # of many processes at once
    done: list[Check] = []
    try:
        done += cases(interpreted)[name](device)
    except Exception as error:  # whatever a kernel or its compiler raises is this case's result
        traceback.print_exc()
        done.append(Check(name, "", float("nan"), 0, said(error)))
    return done, interpreted or is_usable()


def said(error: Exception) -> str:
    """In one line. A compiler's errors begin with a place and end with what is wrong there."""
    lines = [line.strip() for line in f"{type(error).__name__}: {error}".splitlines() if line.strip()]
    return " … ".join(dict.fromkeys([lines[0][:200], lines[-1][-200:]]))


def cases(interpreted: bool) -> dict[str, Case]:
    """By name. Their shapes are those of the models that later parts run, so that those find them compiled."""
    found: dict[str, Case] = {**linear_cases(interpreted), **embed_cases(interpreted), **attention_cases(interpreted)}
    vocabularies = (300,) if interpreted else (1001, 49_152, 128_256)
    for columns in vocabularies:
        found[f"sample {columns}"] = partial(_sample, columns=columns)
    found[f"rank {vocabularies[-1]}"] = partial(_rank, columns=vocabularies[-1])
    sizes, columns = ((6, 1, 9), 40) if interpreted else ((16, 1, 64, 7, 33), 49_152)
    found["settle"] = partial(_settle, sizes=sizes, columns=columns, interpreted=interpreted)
    for form in ("auto", "int8") if interpreted else ("auto", "fp8", "int8"):
        found[f"move_kv {form}"] = partial(_move, form=form, interpreted=interpreted)
    return found


def _draws(rows: int, columns: int) -> list[Draw]:
    """Greedy, plain and filtered ones."""
    kinds = [
        {"temperature": 0.0},
        {"temperature": 1.0},
        {"temperature": 0.7, "top_k": min(20, columns)},
        {"temperature": 0.8, "top_p": 0.9},
        {"temperature": 1.2, "min_p": 0.05},
        {"temperature": 0.9, "top_k": min(50, columns), "top_p": 0.95, "min_p": 0.01},
    ]
    return [Draw(seed=2**63 + 977 * row, position=31 * row, **kinds[row % len(kinds)]) for row in range(rows)]  # type: ignore[arg-type]


def _logits(rows: int, columns: int) -> torch.Tensor:
    return 3 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns))


def _sample(device: torch.device, *, columns: int) -> Iterator[Check]:
    rows = 12
    logits, draws = _logits(rows, columns), _draws(rows, columns)
    logits[0, -1] = logits[0, columns // 2] = logits[0].max() + 1  # a tie goes to the lower id
    got, want = sample(logits.to(device), draws), plain_sample(logits.numpy(), draws)
    yield Check("sample", f"V {columns}, tokens that differ", sum(a != b for a, b in zip(got, want, strict=True)), 0)
    alone = [sample(logits[row : row + 1].to(device), [draw])[0] for row, draw in enumerate(draws)]
    yield Check("sample", f"V {columns}, alone", sum(a != b for a, b in zip(got, alone, strict=True)), 0)


def _rank(device: torch.device, *, columns: int) -> Iterator[Check]:
    rows, k = 6, 10
    logits, draws = _logits(rows, columns), _draws(rows, columns)
    vocabulary = 2 * np.arange(columns)
    for name, ids in (("all ids", None), ("trimmed", vocabulary)):
        tokens, shares = rank(logits.to(device), ids, draws, k)
        want, expected = plain_rank(logits.numpy(), ids, draws, k)
        yield Check("rank", f"V {columns}, {name}, tokens that differ", float((tokens != want).sum()), 0)
        error = float(np.abs(shares / np.maximum(expected, 1e-30) - 1).max())
        yield Check("rank", f"V {columns}, {name}, probabilities", error, 1e-3)


def _sides(cache: PagedCache) -> list[torch.Tensor]:
    """What a cache holds, [layers, slots, Hkv, ...] each, as bytes."""
    held = []
    for side in (cache.k, cache.v, cache.k_scale, cache.v_scale):
        if side is not None:
            paged = side if side.ndim == 5 else side[..., None]
            slots = paged.transpose(2, 3).reshape(len(side), -1, side.shape[2], paged.shape[-1])
            held.append(slots.contiguous().view(torch.uint8).cpu().clone())
    return held


def _move(device: torch.device, *, form: str, interpreted: bool) -> Iterator[Check]:
    """Chains of moves, whose targets are sources of others."""
    cache = _filled(8, device, form=form, interpreted=interpreted)
    before = _sides(cache)
    moves = {1: 2, 2: 3, 3: 5, 65: 64, 64: 65, 17: 127}
    move_kv(cache, np.array([*moves.values()]), np.array([*moves]))
    yield Check("move_kv", f"{form}, bytes that differ", _misplaced(before, _sides(cache), moves), 0)


def _filled(blocks: int, device: torch.device, *, form: str, interpreted: bool) -> PagedCache:
    """A cache with another value everywhere, nearly."""
    shape = CacheShape(2, 2, 16) if interpreted else CacheShape(32, 8, 128)
    dtype = torch.float16 if interpreted else torch.bfloat16
    cache = allocate(shape, blocks, form=form, dtype=dtype, device=device)
    for side in (cache.k, cache.v, cache.k_scale, cache.v_scale):
        if side is not None:
            values = torch.rand(side.shape, generator=torch.Generator().manual_seed(3)) * 100
            side.copy_(values.to(side.dtype))
    return cache


def _misplaced(before: list[torch.Tensor], after: list[torch.Tensor], moves: Mapping[int, int]) -> int:
    """Bytes that are not what stood in the slot they come from. moves: slot -> the one it was copied from."""
    origin = [moves.get(slot, slot) for slot in range(before[0].shape[1])]
    return sum(int((side[:, origin] != now).sum()) for side, now in zip(before, after, strict=True))


def _settle(device: torch.device, *, sizes: Sequence[int], columns: int, interpreted: bool) -> Iterator[Check]:
    """Trees in which most nodes carry what is chosen after their parents. sizes: nodes of each."""
    pick, rows = random.Random(4), sum(sizes)
    logits, draws = _logits(rows, columns), _draws(rows, columns)
    chosen = plain_sample(logits.numpy(), draws)
    trees, tables, starts, moves = [], [], [0], {}
    for number, nodes in enumerate(sizes):
        parents = [-1, *(pick.randrange(max(0, node - 4), node) for node in range(1, nodes))]
        here = chosen[starts[-1] : starts[-1] + nodes]
        tokens = [here[parent] if pick.random() < 0.6 else pick.randrange(columns) for parent in parents]
        tree = TokenTree(tuple(tokens), tuple(parents))
        table = [5 * number + place for place in (3, 0, 4, 1, 2)]
        path, _ = walk(tree, 1, lambda node, _, here=here: here[node], lambda *_: False)  # type: ignore[misc]
        slots = slots_of(table, 7 * number, nodes)
        moves |= {slots[place]: slots[node] for place, node in enumerate(path) if place != node}
        trees.append(tree)
        tables.append(table)
        starts.append(starts[-1] + nodes)
    contexts = [7 * number for number in range(len(sizes))]
    batch = Batch.of(
        ids=[token for tree in trees for token in tree.tokens],
        positions=[c + depth for c, tree in zip(contexts, trees, strict=True) for depth in tree.depths],
        slots=[s for c, t, tree in zip(contexts, tables, trees, strict=True) for s in slots_of(t, c, len(tree))],
        sampled=[*range(rows)],
        starts=starts,
        contexts=contexts,
        tables=tables,
        causal=[tree.is_chain for tree in trees],
        ancestors=[word for tree in trees for word in tree.ancestors],
    )
    cache = _filled(5 * len(sizes), device, form="auto", interpreted=interpreted)
    before = _sides(cache)
    settled = settle(logits.to(device), draws, batch, cache, move=move_slots).result()
    name = f"{len(sizes)} trees, {len(moves)} entries to move"
    wrong = sum(got != want for got, want in zip(settled.tokens, chosen, strict=True))
    yield Check("settle", f"{name}, tokens that differ", wrong, 0)
    wrong = _misplaced(before, _sides(cache), moves) if settled.moved else len(moves)
    yield Check("settle", f"{name}, bytes that differ", wrong, 0)
