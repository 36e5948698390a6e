"""Who asks: one holder of a key, and what the key allows."""

from __future__ import annotations

from typing import Protocol


class Caller(Protocol):
    """The same object for all requests of one key, on every protocol."""

    @property
    def id(self) -> str:
        """Names the key without being it; "" where none is needed."""

    def begin(self) -> None:
        """A reply is about to start. Raises ApiError 429, with retry-after, when the key's limits do not allow it."""

    def spend(self, tokens: int) -> None:
        """So many tokens were read or written for this caller."""

    def end(self) -> None:
        """A reply that began has ended, however it did."""


class Anyone:
    """Whoever comes: no key, no limits."""

    id = ""

    def begin(self) -> None: ...

    def spend(self, tokens: int) -> None: ...

    def end(self) -> None: ...


ANYONE = Anyone()
