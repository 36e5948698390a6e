"""`fill`: rows of a pass that wait for a guess take what was found for the row before them."""

from typing import Protocol

from ..feed import Features
from ..linear import Activation, Indices


class Fill(Protocol):
    def __call__(self, given: Indices | Features, found: Activation, sources: Indices) -> Indices | Features:
        """given [R] or [R, W], found [M] or [M, W], sources [R] -> like `given`.

        Row r is found[sources[r]], or stays as it is where sources[r] is -1.
        """
        ...
