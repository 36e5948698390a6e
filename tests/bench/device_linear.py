"""Products and embeddings on the device against float64, and their rows against themselves in other company."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from device_models import LLAMA_8B, SMOLLM2, StoredMatrix
from device_tools import Check

from paceline.engine.model.config import ModelConfig
from paceline.kernels.embed.triton_impl import embed
from paceline.kernels.gpu.packing import Packer
from paceline.kernels.linear import Norm
from paceline.kernels.linear.triton_impl import linear

BOUND = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 2e-5}
_PIECE = 8192  # rows of a weight in float64 at once
_KIND = {"float": {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}}
_STORED = {"q4": "Q4_0", "q8": "Q8_0"}


@dataclass(frozen=True)
class Product:
    """One product of a decoder with what is fused into it."""

    name: str
    rows: int  # N
    columns: int  # K
    norm: bool = False
    residual: bool = False
    gate: bool = False
    wide: bool = False


def products(config: ModelConfig) -> list[Product]:
    """Those of one layer, and the head."""
    hidden, inner = config.hidden_size, config.intermediate_size
    return [
        Product("qkv", config.q_rows + 2 * config.kv_rows, hidden, norm=True),
        Product("out", hidden, config.q_rows, residual=True),
        Product("gate_up", 2 * inner, hidden, norm=True, gate=True),
        Product("down", hidden, inner, residual=True),
        Product("head", config.vocab_size, hidden, norm=True, wide=True),
    ]


Case = Callable[[torch.device], Iterable[Check]]


def linear_cases(interpreted: bool) -> dict[str, Case]:
    if interpreted:
        tiny = [Product("qkv", 48, 32, norm=True), Product("gate_up", 64, 32, norm=True, gate=True)]
        return {
            f"linear {form} {product.name}": partial(
                _linear, product=product, form=form, dtype=torch.float16, counts=(1, 17), most=18
            )
            for form, product in zip(("float", "q4", "q8"), (*tiny, tiny[0]), strict=True)
        }
    wanted = [
        *(("smollm2", SMOLLM2, form, torch.bfloat16) for form in ("float", "q4", "q8")),
        *(("llama-8b", LLAMA_8B, form, torch.bfloat16) for form in ("float", "q4")),
        ("smollm2", SMOLLM2, "float", torch.float16),
        ("smollm2", SMOLLM2, "q4", torch.float16),
    ]
    return {
        f"linear {model} {form} {str(dtype)[6:]} {product.name}": partial(
            _linear, product=product, form=form, dtype=dtype, counts=(1, 2, 3, 8, 16, 17, 33, 63), most=64
        )
        for model, config, form, dtype in wanted
        for product in products(config)
    }


def embed_cases(interpreted: bool) -> dict[str, Case]:
    rows, columns = (40, 64) if interpreted else (SMOLLM2.vocab_size, SMOLLM2.hidden_size)
    dtype = torch.float16 if interpreted else torch.bfloat16
    return {
        f"embed {form}": partial(_embed, form=form, rows=rows, columns=columns, dtype=dtype)
        for form in (("q4",) if interpreted else ("float", "q4", "q8"))
    }


def _matrix(form: str, dtype: torch.dtype, rows: int, columns: int) -> StoredMatrix:
    return StoredMatrix.random(_STORED.get(form) or _KIND["float"][dtype], rows, columns)


def _values(matrix: StoredMatrix, first: int, count: int) -> torch.Tensor:
    out = np.empty((count, matrix.shape[1]), np.float32)
    matrix.read(first, out)
    return torch.from_numpy(out)


def _linear(
    device: torch.device, *, product: Product, form: str, dtype: torch.dtype, counts: tuple[int, ...], most: int
) -> Iterator[Check]:
    """counts: of rows, whose results must be those of `most` rows."""
    rng = torch.Generator().manual_seed(5)
    matrix = _matrix(form, dtype, product.rows, product.columns)
    weight = Packer("stored", dtype, device).pack(matrix, gate=product.gate)
    past = 67  # beyond what a tree has, where the library computes unless all has to be exact
    x = torch.randn(past, product.columns, generator=rng).to(device, dtype)
    scale = (0.5 + torch.rand(product.columns, generator=rng)).to(device)
    width = product.rows // 2 if product.gate else product.rows
    residual = torch.randn(past, width, generator=rng).to(device, dtype) if product.residual else None

    def run(rows: slice, exact: bool) -> torch.Tensor:
        return linear(
            x[rows],
            weight,
            norm=Norm(scale, 1e-5) if product.norm else None,
            residual=None if residual is None else residual[rows],
            gate=product.gate,
            wide=product.wide,
            exact=exact,
        )

    want = _expected(x, matrix, product, scale)
    want = want if residual is None else want + residual.double()
    name = f"{form} {str(dtype)[6:]} {product.name} {product.rows} x {product.columns}"
    whole = run(slice(0, most), False)
    yield Check("linear", f"{name}, {most} rows", largest_error(whole, want[:most]), BOUND[dtype])
    yield Check(
        "linear", f"{name}, {past} rows, library", largest_error(run(slice(0, past), False), want), BOUND[dtype]
    )
    differ = 0
    for count in counts:
        for first in {0, most - count}:
            rows = slice(first, first + count)
            differ += differing(run(rows, False), whole[rows])
    differ += differing(run(slice(0, past), True)[:most], whole)
    yield Check("linear", f"{name}, rows that differ in other company", differ, 0)


def _expected(x: torch.Tensor, matrix: StoredMatrix, product: Product, scale: torch.Tensor) -> torch.Tensor:
    """In float64, but for the residual."""
    x = x.double()
    if product.norm:
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * scale.double()
    pieces = [
        x @ _values(matrix, first, min(_PIECE, product.rows - first)).to(x.device).double().t()
        for first in range(0, product.rows, _PIECE)
    ]
    y = torch.cat(pieces, -1)
    if product.gate:
        gates, ups = y.chunk(2, -1)
        y = gates * torch.sigmoid(gates) * ups
    return y


def largest_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest, as a share of 1 + |value|; infinite where something is not finite."""
    error = ((got.double() - want).abs() / (1 + want.abs())).max()
    return float(error.nan_to_num(float("inf")))


def differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """Rows that are not the same."""
    return int((one != other).any(-1).sum())


def _embed(device: torch.device, *, form: str, rows: int, columns: int, dtype: torch.dtype) -> Iterator[Check]:
    matrix = _matrix(form, dtype, rows, columns)
    table = Packer("stored", dtype, device).pack_table(matrix)
    ids = torch.tensor([0, rows - 1, 7, 7, rows // 2])
    got = embed(table, ids.to(device)).cpu()
    want = _values(matrix, 0, rows)[ids].to(dtype)
    yield Check("embed", f"{form} {str(dtype)[6:]} {rows} x {columns}, rows that differ", differing(got, want), 0)
