"""Short-lived keys for browsers: the ones that are alive, and whose they are."""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from .api_errors import ApiError
from .caller import Caller
from .fields import JsonObject

SECRET_PREFIX = "ek_"
_PER_CALLER, _IN_ALL = 256, 4096  # alive at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What one short-lived key stands for."""

    caller: Caller  # whose limits it uses
    expires_at: float  # Unix time
    session: JsonObject  # settings of a realtime session that is opened with it


class Secrets:
    """The short-lived keys that are alive, by their hash. In memory: a restart ends them, and their holders ask again.

    Nothing is signed: a secret must end with the key it came from, and its settings must be kept somewhere anyway.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._alive: dict[bytes, Secret] = {}

    def __len__(self) -> int:
        return len(self._alive)

    def make(self, caller: Caller, seconds: int, session: JsonObject) -> tuple[str, int]:
        """The secret and when it expires. Raises ApiError 429 when too many are alive."""
        self._forget_expired()
        count = Counter(secret.caller.id for secret in self._alive.values())[caller.id]
        if count >= _PER_CALLER or len(self._alive) >= _IN_ALL:
            theirs = [s for s in self._alive.values() if s.caller.id == caller.id or count < _PER_CALLER]
            wait = math.ceil(min(secret.expires_at for secret in theirs) - self._clock())
            raise ApiError(
                429,
                f"Too many client secrets are alive; make fewer, shorter ones, or try again in {wait} s.",
                type="rate_limit_error",
                code="too_many_client_secrets",
                headers={"retry-after": str(wait)},
            )
        value = SECRET_PREFIX + secrets.token_urlsafe(32)
        expires_at = math.floor(self._clock()) + seconds
        self._alive[_digest(value)] = Secret(caller=caller, expires_at=expires_at, session=session)
        return value, expires_at

    def find(self, value: str) -> Secret | None:
        """None for one that never was or is no more."""
        secret = self._alive.get(_digest(value))
        if secret is None or secret.expires_at <= self._clock() or secret.caller.removed:
            return None
        return secret

    def _forget_expired(self) -> None:
        now = self._clock()
        self._alive = {digest: secret for digest, secret in self._alive.items() if secret.expires_at > now}


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode(errors="surrogatepass")).digest()
