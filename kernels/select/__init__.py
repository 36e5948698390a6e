"""`select`: keep the rows whose next token is wanted."""

from typing import Protocol

from ..linear import Activation, Indices


class Select(Protocol):
    def __call__(self, x: Activation, rows: Indices) -> Activation:
        """x [R, H], rows [M] int64 -> [M, H]."""
        ...
