"""What one key may use: so many replies at once, so many tokens a minute, and how urgent its replies may be."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paceline.engine.request import Priority

from .api_errors import ApiError

RATE_HEADERS = tuple(f"x-ratelimit-{what}-tokens" for what in ("limit", "remaining", "reset"))

Clock = Callable[[], float]  # seconds, from any origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The limits of one key; None is no limit."""

    concurrency: int | None = None  # replies at once; the n choices of one request are one reply
    tokens_per_minute: int | None = None  # prompt tokens that were not cached, and output tokens
    priority: Priority = "interactive"  # the best class its replies may have


class Bucket:
    """Tokens a minute: fills evenly, holds one minute's worth, and may be overdrawn.

    Nobody knows how long a reply will be, so one may start while a token is left, and what it takes beyond that is a
    debt that has to be paid off first. How long that takes is known exactly, which a window that slides over past
    replies could tell only by keeping them.
    """

    def __init__(self, per_minute: int, clock: Clock = time.monotonic) -> None:
        self.size = per_minute
        self._rate = per_minute / 60
        self._clock = clock
        self._level = float(per_minute)
        self._at = clock()

    @property
    def level(self) -> float:
        """Tokens that are left; below 0 in debt."""
        now = self._clock()
        self._level = min(float(self.size), self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level

    def take(self, tokens: int) -> None:
        self._level = min(float(self.size), self.level - tokens)

    def wait_s(self, level: float = 1.0) -> float:
        """Seconds until so many tokens are there, if nothing is taken meanwhile."""
        return max(0.0, (level - self.level) / self._rate)


class Holder:
    """The caller behind one key: counts what runs and what was spent, over all protocols."""

    def __init__(
        self,
        id: str,  # noqa: A002 - the protocol's name
        name: str,
        allowance: Allowance,
        *,
        refresh: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        """refresh: called before each decision; it may change or remove the key."""
        self.id = id
        self.name = name
        self.removed = False
        self.running = 0
        self._refresh = refresh
        self._clock = clock
        self._allowance = allowance
        self._bucket = self._new_bucket()

    @property
    def best(self) -> Priority:
        return self._allowance.priority

    @property
    def allowance(self) -> Allowance:
        return self._allowance

    @allowance.setter
    def allowance(self, allowance: Allowance) -> None:
        """Holds from the next reply on; the minute starts afresh only where its limit is another one."""
        changed = allowance.tokens_per_minute != self._allowance.tokens_per_minute
        self._allowance = allowance
        if changed:
            self._bucket = self._new_bucket()

    def check(self) -> None:
        self._refresh()
        if self.removed:
            raise ApiError(401, "This API key was removed; use another one.", code="invalid_api_key")
        most = self._allowance.concurrency
        if most is not None and self.running >= most:
            raise self._refusal(
                f"This key may have {most} replies at once, and {self.running} are running; wait for one to end.", 1
            )
        bucket = self._bucket
        if bucket is not None and (wait := bucket.wait_s()) > 0:
            seconds = math.ceil(wait)
            raise self._refusal(
                f"This key's {bucket.size} tokens per minute are used up; try again in {seconds} s.", seconds
            )

    def begin(self) -> None:
        self.check()
        self.running += 1

    def spend(self, tokens: int) -> None:
        if self._bucket is not None:
            self._bucket.take(tokens)

    def end(self) -> None:
        self.running -= 1

    def headers(self) -> Mapping[str, str]:
        bucket = self._bucket
        if bucket is None:
            return {}
        reset = math.ceil(bucket.wait_s(bucket.size))
        values = (str(bucket.size), str(max(0, math.floor(bucket.level))), f"{reset}s")
        return dict(zip(RATE_HEADERS, values, strict=True))

    def _new_bucket(self) -> Bucket | None:
        per_minute = self._allowance.tokens_per_minute
        return None if per_minute is None else Bucket(per_minute, self._clock)

    def _refusal(self, message: str, retry_after_s: int) -> ApiError:
        return ApiError(
            429,
            message,
            type="rate_limit_error",
            code="rate_limit_exceeded",
            headers={"retry-after": str(retry_after_s), **self.headers()},
        )
