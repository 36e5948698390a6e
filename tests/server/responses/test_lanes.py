"""Who is next."""

from __future__ import annotations

import pytest
from realtime_session import LIMITS

from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.parameters import Parameters
from paceline.server.responses.lanes import MAX_RUNNING, MAX_WAITING, Lanes, Run
from paceline.server.responses.request import read_request


def run(name: str, lane: str | None) -> Run:
    request = read_request(Fields({"input": "x"}), LIMITS, Parameters(), find=lambda _: None, max_items=10)
    return Run(id=name, lane=lane, request=request, client_event=None)


def started(lanes: Lanes) -> list[str]:
    out = []
    while (run := lanes.next()) is not None:
        out.append(run.id)
    return out


def test_in_order_within_a_lane() -> None:
    lanes = Lanes()
    for name, lane in (("a1", "a"), ("a2", "a"), ("none", None), ("b1", "b"), ("a3", "a")):
        lanes.add(run(name, lane))
    assert started(lanes) == ["a1", "none", "b1"]
    first = lanes.running_in("a")
    assert first is lanes.find("a1")
    assert first is not None
    lanes.add_first(run("a0", "a"))
    lanes.end(first)
    assert (lanes.find("a1"), lanes.has_ended("a1"), lanes.has_ended("a2")) == (None, True, False)
    assert started(lanes) == ["a0"]
    assert not lanes.idle


def test_bounds() -> None:
    lanes = Lanes()
    for number in range(MAX_RUNNING + MAX_WAITING):
        lanes.require_room()
        lanes.add(run(str(number), str(number)))
        lanes.next()
    with pytest.raises(ApiError) as full:
        lanes.require_room()
    assert full.value.status == 429
