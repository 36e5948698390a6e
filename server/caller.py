"""Who asks: one holder of a key, and what the key allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from paceline.engine.request import Priority


class Caller(Protocol):
    """The same object for all requests of one key, on every protocol."""

    @property
    def id(self) -> str:
        """Names the key without being it; "" where none is needed."""

    @property
    def name(self) -> str:
        """What logs call the key; "" for one that nobody gave out."""

    @property
    def removed(self) -> bool:
        """True once the key is no more."""

    @property
    def best(self) -> Priority:
        """The best latency class its replies may have."""

    def check(self) -> None:
        """Raises ApiError 429, with retry-after, when the key's limits allow no reply now, and 401 when the key was
        removed meanwhile. Asked before a prompt or a grammar is made, so that these cost nobody anything."""

    def begin(self) -> None:
        """A reply is about to start. Raises as `check`."""

    def spend(self, tokens: int) -> None:
        """So many tokens were read or written for this caller; a negative number gives tokens back."""

    def end(self) -> None:
        """A reply that began has ended, however it did."""

    def headers(self) -> Mapping[str, str]:
        """What answers say about the limits, as `x-ratelimit-*`."""


class Anyone:
    """Whoever comes: no limits."""

    best: Priority = "interactive"
    removed = False

    def __init__(self, id: str = "", name: str = "") -> None:  # noqa: A002 - the protocol's name
        self.id = id
        self.name = name

    def check(self) -> None: ...

    def begin(self) -> None: ...

    def spend(self, tokens: int) -> None: ...

    def end(self) -> None: ...

    def headers(self) -> Mapping[str, str]:
        return {}


ANYONE = Anyone()
