from __future__ import annotations

import pytest

from paceline.server.api_errors import ApiError
from paceline.server.census import Census


def test_in_total() -> None:
    census = Census(2, 2)
    places = [census.enter(address) for address in ("192.0.2.1", "192.0.2.2")]
    with pytest.raises(ApiError, match="2 connections are open") as caught:
        census.enter("192.0.2.3")
    assert caught.value.status == 503
    assert caught.value.headers["retry-after"]
    census.leave(places[0])
    assert census.enter("192.0.2.3")
    assert census.total == 2


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::1%eth0", True),
        ("", "", True),
    ],
)
def test_from_one_address(first: str, second: str, same: bool) -> None:
    census = Census(10, 1)
    place = census.enter(first)
    if same:
        with pytest.raises(ApiError, match="from your address"):
            census.enter(second)
    else:
        census.leave(census.enter(second))
    census.leave(place)
    census.leave(census.enter(first))
    assert census.total == 0
    assert not census._by_place  # nothing is kept of who is gone
