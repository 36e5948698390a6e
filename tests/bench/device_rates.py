"""How fast single kernels move bytes, against a large copy on the same device."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from device_linear import Product, products
from device_models import LLAMA_8B, TINY, StoredMatrix, bushy
from device_tools import Bar, Figure, Machine, nbytes
from jobs import Job, layout_of

from paceline.engine.model.config import ModelConfig
from paceline.engine.model.decoder import cache_shape
from paceline.kernels.gpu.packing import Packer
from paceline.kernels.kv_cache.triton_impl import allocate
from paceline.kernels.linear import Norm
from paceline.kernels.linear.triton_impl import linear
from paceline.kernels.move_kv.triton_impl import move_slots
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention.triton_impl import to_device, tree_attention
from paceline.kernels.tree_attention.work import plan

_SPREAD = 6  # times what the last-level cache holds: that much is read before anything is read again
_PATH = 16  # nodes of the longest path that is moved


@dataclass(frozen=True)
class Sizes:
    """What is computed: layers of a model, over sequences of one context; paths of accepted nodes to move."""

    config: ModelConfig
    dtype: torch.dtype
    sequences: int
    context: int
    layers: int
    paths: int


def _sizes(machine: Machine) -> Sizes:
    if machine.interpreted:
        return Sizes(TINY, torch.float16, sequences=2, context=20, layers=1, paths=1)
    return Sizes(LLAMA_8B, torch.bfloat16, sequences=8, context=8192, layers=4, paths=8)


def sections(machine: Machine) -> list[Iterator[Figure]]:
    """Each can be made without the others."""
    sizes = _sizes(machine)
    return [_copy(machine), _attention(machine, sizes), _products(machine, sizes), _moves(machine, sizes)]


def _copy(machine: Machine) -> Iterator[Figure]:
    yield Figure("copy, read and written", machine.copy_rate / 1e9, "GB/s")


def _share(machine: Machine, size: int, ms: float) -> float:
    """Percent of the copy's bytes per second."""
    return 100 * size / (ms * 1e-3) / machine.copy_rate


def processors(machine: Machine) -> int:
    """Multiprocessors of the device."""
    return 2 if machine.interpreted else torch.cuda.get_device_properties(machine.device).multi_processor_count


def _attention(machine: Machine, sizes: Sizes) -> Iterator[Figure]:
    """Keys and values of committed tokens alone are counted, layers one after the other."""
    shape, blocks = cache_shape(sizes.config), -(-(sizes.context + _PATH) // BLOCK_SIZE)
    device, dtype = machine.device, sizes.dtype
    cache = allocate(
        type(shape)(sizes.layers, shape.kv_heads, shape.head_dim),
        blocks * sizes.sequences,
        form="auto",
        dtype=dtype,
        device=device,
    )
    for side in (cache.k, cache.v):
        side.normal_()
    owned = torch.randperm(blocks * sizes.sequences).view(sizes.sequences, blocks).tolist()
    programs = 2 * processors(machine) // shape.kv_heads
    for name, parents, bar in (("16-node trees", bushy(_PATH), Bar(75, least=True)), ("single rows", (-1,), None)):
        jobs = [Job(sizes.context, len(parents), parents if len(parents) > 1 else None)] * sizes.sequences
        work = to_device(plan(layout_of(jobs, owned), programs=programs), device)
        q = torch.randn(
            sizes.sequences * len(parents), sizes.config.num_heads, shape.head_dim, device=device, dtype=dtype
        )

        def run(q: torch.Tensor = q, work: object = work) -> None:
            for layer in range(sizes.layers):
                tree_attention(q, cache, layer, work)

        ms = machine.ms(machine.captured(run), per=sizes.layers)
        size = 2 * sizes.sequences * sizes.context * shape.kv_heads * shape.head_dim * dtype.itemsize
        label = f"prefix attention, {sizes.sequences} sequences of {sizes.context} tokens, {name}"
        yield Figure(f"{label}: time", ms * 1e3, "us")
        yield Figure(label, _share(machine, size, ms), "% of copy", bar)


def _products(machine: Machine, sizes: Sizes) -> Iterator[Figure]:
    """Every product of a layer, with what a decoder fuses into it. Weights alone are counted, each read from memory."""
    layer = [product for product in products(sizes.config) if product.name != "head"]
    for form, kind, bar in (("q4", "Q4_0", Bar(65, least=True)), ("bf16", "BF16", None)):
        if machine.interpreted and form == "bf16":
            continue  # the interpreter has no such product
        total = dict.fromkeys((1,) if machine.interpreted else (1, 4, 16), (0, 0.0))
        for product in layer:
            weight = Packer("stored", sizes.dtype, machine.device).pack(
                StoredMatrix.random(kind, product.rows, product.columns), gate=product.gate
            )
            size = nbytes(weight)
            weights = [weight, *(copy.deepcopy(weight) for _ in range(_copies(machine, size) - 1))]
            for rows, (bytes_, spent) in total.items():
                ms = _product_ms(machine, sizes, product, weights, rows)
                total[rows] = (bytes_ + size, spent + ms)
                name = f"{form} linear, {product.name} {product.rows} x {product.columns}, {rows} rows"
                yield Figure(name, _share(machine, size, ms), "% of copy")
        for rows, (bytes_, spent) in total.items():
            yield Figure(f"{form} linear, a layer, {rows} rows", _share(machine, bytes_, spent), "% of copy", bar)


def _copies(machine: Machine, size: int) -> int:
    """Of a weight, so that none of them is in a cache when its turn comes."""
    if machine.interpreted:
        return 1
    return -(-_SPREAD * torch.cuda.get_device_properties(machine.device).L2_cache_size // size)


def _product_ms(machine: Machine, sizes: Sizes, product: Product, weights: list[object], rows: int) -> float:
    device, dtype = machine.device, sizes.dtype
    x = torch.randn(rows, product.columns, device=device, dtype=dtype)
    norm = Norm(torch.ones(product.columns, device=device), 1e-5) if product.norm else None
    residual = torch.randn(rows, product.rows, device=device, dtype=dtype) if product.residual else None

    def run() -> None:
        for weight in weights:
            linear(x, weight, norm=norm, residual=residual, gate=product.gate, exact=True)

    return machine.ms(machine.captured(run), repeats=11, per=len(weights))


def _moves(machine: Machine, sizes: Sizes) -> Iterator[Figure]:
    """Of one path, all layers at once. Several paths, none in a cache, one launch each."""
    config = sizes.config
    blocks = 4 * sizes.paths
    cache = allocate(cache_shape(config), blocks, form="auto", dtype=sizes.dtype, device=machine.device)
    nodes = torch.arange(_PATH, device=machine.device)
    paths = []
    for path in range(sizes.paths):
        root = path * 4 * BLOCK_SIZE
        source = torch.where(nodes > 0, root + 3 * nodes + 1, -1)
        paths.append((source[None], torch.where(nodes > 0, root + nodes, -1)[None]))

    def run() -> None:
        for source, target in paths:
            move_slots(cache, source, target)

    ms = machine.ms(machine.captured(run), per=len(paths), cold=not machine.interpreted)
    name = f"move of {_PATH - 1} entries, {config.num_layers} layers"
    yield Figure(name, ms * 1e3, "us", Bar(10))
