"""How much longer classes of service may make each other's steps. Class 0 is the highest."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .cost import Work

_LONGER = 1.0  # of a step, that rows of its own class may add to it: a prompt's chunk at most doubles it
_BELOW = 0.5  # of that, for each class they are below; above it, as many times more


class Step(NamedTuple):
    """What a step computes before anybody guesses.

    streams: for each class that decodes in it, the decoding rows of that class and of all above.
    """

    work: Work
    streams: Mapping[int, Work] = MappingProxyType({})


def bearable(own_ms: Mapping[int, float], rank: int) -> float:
    """Most milliseconds of a step that rows of class `rank` may join.

    own_ms: for each class that has to bear them, the milliseconds of its own rows and those above alone. With d classes
    between them a step gets at most 1 / 2^d longer, whatever all classes down there add together: interactive
    streams wait half a step for normal requests and a quarter for background ones.
    """
    return min((ms * (1 + _LONGER * _BELOW ** (rank - each)) for each, ms in own_ms.items()), default=float("inf"))
