from __future__ import annotations

import math

import pytest

from paceline.server.api_errors import ApiError
from paceline.server.limits import RATE_HEADERS, Allowance, Bucket, Holder


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def holder(clock: Clock, **limits: int) -> Holder:
    return Holder("key_1", "anna", Allowance(**limits), clock=clock)


def refusal(caller: Holder) -> ApiError:
    with pytest.raises(ApiError) as caught:
        caller.begin()
    return caught.value


def test_a_bucket_fills_evenly_and_no_higher_than_a_minute(clock: Clock) -> None:
    bucket = Bucket(60, clock)
    bucket.take(90)
    assert bucket.level == -30
    assert bucket.wait_s() == 31
    clock.now += 31
    assert bucket.level == pytest.approx(1)
    clock.now += 1000
    assert bucket.level == 60
    bucket.take(-5)
    assert bucket.level == 60


def test_the_time_to_wait_is_true(clock: Clock) -> None:
    """Not a second longer than needed, and not one too short."""
    anna = holder(clock, tokens_per_minute=600)
    anna.begin()
    anna.spend(650)
    anna.end()
    error = refusal(anna)
    assert (error.status, error.type, error.code) == (429, "rate_limit_error", "rate_limit_exceeded")
    wait = int(error.headers["retry-after"])
    assert wait == math.ceil(51 / 10)
    assert f"{wait} s" in str(error)
    clock.now += wait - 1
    refusal(anna)
    clock.now += 1
    anna.begin()


def test_replies_at_once(clock: Clock) -> None:
    anna = holder(clock, concurrency=2)
    anna.begin()
    anna.begin()
    assert "2 replies at once" in str(refusal(anna))
    assert anna.running == 2  # a refusal takes no place
    anna.end()
    anna.begin()
    assert anna.headers() == {}


def test_what_answers_say(clock: Clock) -> None:
    anna = holder(clock, tokens_per_minute=60)
    anna.spend(90)
    assert anna.headers() == dict(zip(RATE_HEADERS, ("60", "0", "90s"), strict=True))
    assert RATE_HEADERS[0] == "x-ratelimit-limit-tokens"
    assert refusal(anna).headers == {"retry-after": "31", **anna.headers()}


def test_new_limits_hold_at_once_and_old_debts_stay(clock: Clock) -> None:
    anna = holder(clock, tokens_per_minute=60)
    anna.spend(100)
    anna.allowance = Allowance(tokens_per_minute=60, concurrency=1)
    refusal(anna)
    anna.allowance = Allowance(tokens_per_minute=120, concurrency=1)
    anna.begin()
    refusal(anna)
    anna.allowance = Allowance()
    anna.begin()


def test_a_key_that_is_removed_while_it_decides(clock: Clock) -> None:
    def remove() -> None:
        anna.removed = True

    anna = Holder("key_1", "anna", Allowance(), refresh=remove, clock=clock)
    assert (refusal(anna).status, anna.running) == (401, 0)
