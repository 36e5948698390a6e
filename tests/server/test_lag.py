from __future__ import annotations

import asyncio
import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram
from service import live_server, running_service, wait_until

from paceline.server.lag import probe
from paceline.server.tasks import cancel_all


async def test_a_loop_that_is_held_up_is_seen() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("lag_seconds", "…", registry=registry, buckets=(0.05, 1))
    task = asyncio.create_task(probe(histogram))
    await asyncio.sleep(0)
    time.sleep(0.1)
    while not registry.get_sample_value("lag_seconds_count"):
        await asyncio.sleep(0.005)
    late, count = (registry.get_sample_value(f"lag_seconds_{what}") for what in ("sum", "count"))
    assert late is not None
    assert late >= 0.07
    assert count == 1
    await cancel_all((task,))


def test_a_server_watches_its_loop(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:

        def looks() -> float:
            return service.metrics.registry.get_sample_value("paceline_event_loop_lag_seconds_count") or 0.0

        with live_server(service):
            wait_until(lambda: looks() > 2)
        after = looks()
        time.sleep(0.05)
        assert looks() == after  # it ends with the server
