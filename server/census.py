"""How many connections are open, in total and from each address."""

from __future__ import annotations

import ipaddress
from collections import Counter

from .api_errors import ApiError


class Census:
    """Counts what was let in; used on the event loop only."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_place: Counter[str] = Counter()
        self.total = 0

    def enter(self, address: str) -> str:
        """Lets one in; returns what `leave` wants. Raises ApiError 503 when there are too many."""
        place = _place_of(address)
        if self.total >= self._most:
            raise _full(f"{self.total} connections are open")
        if self._by_place[place] >= self._most_per_address:
            raise _full(f"{self._most_per_address} connections from your address are open")
        self.total += 1
        self._by_place[place] += 1
        return place

    def leave(self, place: str) -> None:
        self.total -= 1
        self._by_place[place] -= 1
        if not self._by_place[place]:
            del self._by_place[place]


def _place_of(address: str) -> str:
    """Of IPv6 the /64 network: one subscriber usually has a whole one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _full(what: str) -> ApiError:
    return ApiError(
        503,
        f"{what}, which is the most allowed; close some, or try again in a moment.",
        code="too_many_connections",
        headers={"connection": "close"},
    )
