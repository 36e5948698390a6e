"""`feed`: bring values that the host made into a pass, as an activation of all its rows."""

from typing import Any, Protocol

from ..linear import Activation

Features = Any  # [R, W] of one backend: the field of the batch it hands to the function it compiles, None if absent


class Feed(Protocol):
    def __call__(self, features: Features) -> Activation:
        """The batch's features [R, W] -> [R, W], in the dtype of the pass.

        Every batch of a pass that feeds has features of one width. Raises ValueError where a batch has none.
        """
        ...
