"""What one reply costs its caller, from its beginning to its end, which comes once."""

from __future__ import annotations

from .caller import Caller


class Account:
    """Its prompts are paid for at the beginning, whoever leaves before they are read; what of one was cached is given
    back with its first token. A reply that never ran costs nothing."""

    def __init__(self, caller: Caller, prompt_tokens: int) -> None:
        """Raises ApiError when the caller's limits do not allow the reply."""
        caller.begin()
        caller.spend(prompt_tokens)
        self._caller = caller
        self._prompt_tokens = prompt_tokens
        self._read: set[int] = set()
        self._open = True

    def read(self, cached_tokens: int, prompt: int = 0) -> None:
        """One of the prompts has been read, so many tokens of it from the cache; counts once for each."""
        if prompt not in self._read:
            self._read.add(prompt)
            self._caller.spend(-cached_tokens)

    def wrote(self, tokens: int) -> None:
        if tokens:
            self._caller.spend(tokens)

    def close(self, *, ran: bool = True) -> None:
        """Harmless after the first time."""
        if not self._open:
            return
        self._open = False
        if not ran:
            self._caller.spend(-self._prompt_tokens)
        self._caller.end()
