"""Weights in the layout that the Triton kernels read: repacked without loss from a checkpoint, or rounded on request.

Floats lie as [N, K] in the compute dtype, as a library's product wants them too. Quantised rows are cut into units of
64 inputs, the last one filled up:

    q4: 16 words of 16 bits to a unit; nibble p of word j (bits 4p … 4p + 3) is input 16p + j
    q8: 64 bytes to a unit, in the order of the inputs; a byte is q + 128

so that one nibble of 16 words is an operand [16 inputs, rows] for a matrix unit: a word is loaded once, each of its
nibbles is masked out and scaled where it lies, and meets 16 neighbouring columns of x. Scales, and minimums for q4, are
halves; two of them fill one of the 32-bit words that lie beside the integers, low half first:

    q4: (scale, minimum) of each group; 2 words to a unit, or 1 to 2 units for groups of 128
    q8: the scales of a unit's 2 groups, or for groups of 128 the scale twice, 1 word to 2 units

A value is scale * q + minimum: exact in float32 but for the one rounding of the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..backend import WEIGHTS
from ..linear import Floats, Matrix, Stored

UNIT = 64  # inputs
_HALF_UNIT = UNIT // 2  # inputs in a block of GGUF
_PIECE = 4096  # rows converted at once
_STORED = "stored"
FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}  # forms of weights that are floats
_LOSSLESS = {"Q4_0": "q4", "Q4_1": "q4", "Q8_0": "q8"}
_QUANTISED = {"q4": (4, 32), "q4_128": (4, 128), "q8": (8, 32), "q8_128": (8, 128)}  # bits, inputs in a group


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix [N, K] on the device, for `linear` and for `embed` alike.

    data: [N, K] of `dtype`; q4: int16 [N, units * 16]; q8: uint8 [N, units * 64]. scales: int32 [N, words], or None
    for floats. bias: float32 [N] or None. dtype: what rows looked up here are returned in. bits: 4, 8, or 0 for floats.
    group: inputs that share a scale; 0 for floats.
    """

    data: torch.Tensor
    scales: torch.Tensor | None
    bias: torch.Tensor | None
    inputs: int
    dtype: torch.dtype
    bits: int = 0
    group: int = 0

    @property
    def outputs(self) -> int:
        return self.data.shape[0]


class Packer:
    """Packs matrices for one device. weights: one of `backend.WEIGHTS`; "stored" keeps quantised values as they are.

    dtype: the compute dtype, in which floats are held: values are rounded to it, after the form where that is narrower.
    """

    def __init__(self, weights: str, dtype: torch.dtype, device: torch.device) -> None:
        self._weights = weights
        self._dtype = dtype
        self._device = device

    def pack(
        self, matrix: Matrix, bias: Floats | None = None, *, gate: bool = False, form: str | None = None
    ) -> Weight:
        """gate changes nothing here: a program reads gates and what they gate from the two halves of the rows."""
        if form is not None and (form not in WEIGHTS or form == _STORED):
            raise ValueError(f"a weight has no form {form!r}; choose one of {', '.join(WEIGHTS[1:])}")
        offsets = None if bias is None else torch.from_numpy(bias).to(self._device, torch.float32)
        wanted = form or self._form(matrix)
        if wanted not in _QUANTISED:
            return Weight(self._floats(matrix, wanted), None, offsets, matrix.shape[1], self._dtype)
        bits, group = _QUANTISED[wanted]
        data, scales = self._quantised(matrix, wanted)
        return Weight(data, scales, offsets, matrix.shape[1], self._dtype, bits, group)

    def pack_table(self, matrix: Matrix, *, form: str | None = None) -> Weight:
        return self.pack(matrix, form=form)

    def tied_head(self, table: Weight) -> Weight:
        """The table itself: rows to look up and rows to multiply with lie alike."""
        return table

    def packed_bytes(self, matrix: Matrix) -> int:
        """Of the device's memory that `pack` takes for it, a bias aside."""
        rows, inputs = matrix.shape
        form = self._form(matrix)
        if form not in _QUANTISED:
            return rows * inputs * self._dtype.itemsize
        units, words = _sizes(inputs, *_QUANTISED[form])
        return rows * (units * UNIT * _QUANTISED[form][0] // 8 + words * torch.int32.itemsize)

    def _form(self, matrix: Matrix) -> str:
        if self._weights != _STORED:
            return self._weights
        forms = {_LOSSLESS.get(part.kind, _STORED) for part in matrix.parts}
        return forms.pop() if len(forms) == 1 else _STORED  # parts stored differently share only their values

    def _floats(self, matrix: Matrix, form: str) -> torch.Tensor:
        """[N, K]; what is stored in the compute dtype goes to the device as it is."""
        rounded = FLOATS.get(form)
        data = torch.empty(matrix.shape, dtype=self._dtype, device=self._device)
        row = 0
        for piece in _float_pieces(matrix):
            moved = piece.to(self._device)
            data[row : row + len(piece)] = moved if rounded is None else moved.to(rounded)
            row += len(piece)
        return data

    def _quantised(self, matrix: Matrix, form: str) -> tuple[torch.Tensor, torch.Tensor]:
        """(data, scales) of a `Weight`."""
        bits, group = _QUANTISED[form]
        rows, inputs = matrix.shape
        units, words = _sizes(inputs, bits, group)
        shape, dtype = ((rows, units * 16), torch.int16) if bits == 4 else ((rows, units * UNIT), torch.uint8)
        data = torch.empty(shape, dtype=dtype, device=self._device)
        scales = torch.empty((rows, words), dtype=torch.int32, device=self._device)
        row = 0
        for integers, halves in self._groups(matrix, form):
            last = row + len(integers)
            data[row:last], scales[row:last] = _laid_out(integers, halves, bits, group, units)
            row = last
        return data, scales

    def _groups(self, matrix: Matrix, form: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(q int16 [rows, groups, group], scale and minimum float16 [rows, groups, 2]) from top to bottom."""
        if all(_LOSSLESS.get(part.kind) == form for part in matrix.parts):
            for part in matrix.parts:
                raw = part.raw()
                for first in range(0, len(raw), _PIECE):
                    piece = torch.from_numpy(np.require(raw[first : first + _PIECE], requirements=["C", "W"]))
                    yield _read_gguf(piece.to(self._device), part.kind)
            return
        bits, group = _QUANTISED[form]
        for piece in _float_pieces(matrix):
            yield _round(piece.to(self._device).float(), bits, group)


def _sizes(inputs: int, bits: int, group: int) -> tuple[int, int]:
    """(units of integers, words of scales) of a row."""
    units = -(-inputs // UNIT)
    return units, units * (2 if bits == 4 else 1) if group == _HALF_UNIT else -(-inputs // group)


def _float_pieces(matrix: Matrix) -> Iterator[torch.Tensor]:
    """The matrix from top to bottom on the host, in the dtype each part is stored in where that is a float."""
    for part in matrix.parts:
        yield from _stored_floats(part) if part.kind.lower() in FLOATS else _read_floats(part)


def _stored_floats(part: Stored) -> Iterator[torch.Tensor]:
    raw = part.raw()
    for first in range(0, len(raw), _PIECE):
        # Torch takes no array that it may not write to; a file that is mapped is one.
        piece = torch.from_numpy(np.require(raw[first : first + _PIECE], requirements=["C", "W"]))
        yield piece.view(FLOATS[part.kind.lower()])


def _read_floats(part: Stored) -> Iterator[torch.Tensor]:
    for first in range(0, part.shape[0], _PIECE):
        piece = np.empty((min(_PIECE, part.shape[0] - first), part.shape[1]), np.float32)
        part.read(first, piece)
        yield torch.from_numpy(piece)


def _read_gguf(raw: torch.Tensor, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks of 32 inputs, [rows, bytes]: scale, minimum for Q4_1, integers; -> as `Packer._groups`."""
    head = 4 if kind == "Q4_1" else 2
    blocks = raw.view(len(raw), -1, head + (_HALF_UNIT if kind == "Q8_0" else _HALF_UNIT // 2))
    halves = blocks[..., :head].contiguous().view(torch.float16)
    tail = blocks[..., head:]
    if kind == "Q8_0":
        return tail.contiguous().view(torch.int8).short(), torch.cat([halves, torch.zeros_like(halves)], -1)
    if kind == "Q4_0":  # q - 8 times the scale
        halves = torch.cat([halves, -8 * halves], -1)
    return torch.cat([tail & 15, tail >> 4], -1).short(), halves


def _round(values: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, K] float32 -> as `Packer._groups`: one scale (and minimum for 4 bits) over the spread of each group."""
    rows, inputs = values.shape
    # More of the last value widen no group.
    filled = torch.cat([values, values[:, -1:].expand(rows, -inputs % group)], 1).view(rows, -1, group)
    low, high = filled.amin(-1, keepdim=True), filled.amax(-1, keepdim=True)
    if bits == 4:
        base = low.half()
        scale = ((high - base.float()).clamp(min=0) / 15).half()
        least, most = 0, 15
    else:
        base = torch.zeros_like(low, dtype=torch.float16)
        scale = (torch.maximum(low.abs(), high.abs()) / 127).half()
        least, most = -127, 127
    step = torch.where(scale > 0, scale, torch.inf).float()  # without a step every integer is 0
    q = ((filled - base.float()) / step).round().clamp(least, most)
    return q.short(), torch.cat([scale, base], -1)


def _laid_out(
    q: torch.Tensor, halves: torch.Tensor, bits: int, group: int, units: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(data, scales) of a `Weight` from what `Packer._groups` yields."""
    rows = len(q)
    inputs = units * UNIT
    flat = torch.nn.functional.pad(q.reshape(rows, -1), (0, max(0, inputs - q.shape[1] * group)))[:, :inputs]
    if bits == 4:
        nibbles = flat.view(rows, units, 4, 16).int()
        shifts = torch.arange(0, 16, 4, dtype=torch.int32, device=q.device).view(4, 1)
        data = (nibbles << shifts).sum(2, dtype=torch.int32).to(torch.int16).view(rows, -1)
    else:
        data = (flat + 128).to(torch.uint8)
    if group == _HALF_UNIT:
        halves = torch.nn.functional.pad(halves, (0, 0, 0, units * 2 - halves.shape[1]))
    if bits == 8:
        scales = halves[..., 0]
        halves = scales.reshape(rows, -1, 2) if group == _HALF_UNIT else scales.unsqueeze(-1).expand(-1, -1, 2)
    return data, halves.contiguous().view(torch.int32).squeeze(-1)
