"""`embed`: look token ids up in a table; and the head made of the same table where the two are tied."""

from typing import Protocol

from ..linear import Activation, Indices, Matrix, Packed


class PackTable(Protocol):
    def __call__(self, matrix: Matrix, *, form: str | None = None) -> Packed:
        """matrix [V, H] -> a table for `embed`. form: as `Pack` has it."""
        ...


class TiedHead(Protocol):
    def __call__(self, table: Packed) -> Packed:
        """A weight for `linear` with the table's values; the backend decides whether it needs memory of its own."""
        ...


class Embed(Protocol):
    def __call__(self, table: Packed, ids: Indices) -> Activation:
        """table of [V, H], ids [R] int64 -> [R, H]."""
        ...
