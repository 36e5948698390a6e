"""What one reply costs its caller, from its beginning to its end, which comes once."""

from __future__ import annotations

from .caller import Caller


class Account:
    """The prompt is paid for at the beginning, whoever leaves before it is read; what of it was cached is given back
    with the first token. A reply that never ran costs nothing."""

    def __init__(self, caller: Caller, prompt_tokens: int) -> None:
        """Raises ApiError when the caller's limits do not allow the reply."""
        caller.begin()
        caller.spend(prompt_tokens)
        self._caller = caller
        self._prompt_tokens = prompt_tokens
        self._read = False
        self._open = True

    def read(self, cached_tokens: int) -> None:
        """The prompt has been read, so many tokens of it from the cache; counts once."""
        if not self._read:
            self._read = True
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
