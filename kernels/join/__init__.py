"""`join`: what several ops made of the same rows, to be read together, or to come to the host at once."""

from collections.abc import Sequence
from typing import Protocol

from ..linear import Activation


class Join(Protocol):
    def __call__(self, parts: Sequence[Activation], *, below: bool = False) -> Activation:
        """n activations [R, W_i] -> [R, sum of W_i], side by side; below: each row's below one another, [R n, W].

        In their dtype, or in float32 where they have several: token ids come through as they are, up to 2^24.
        """
        ...
