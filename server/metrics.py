"""What /metrics shows: latencies seen at the server's edge, and the engine's own counters read at each scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from paceline.engine.tallies import GuessCounts, SizeCounts
    from paceline.engine.telemetry import EngineStats

Outcome = Literal["stop", "length", "prefilled", "cancelled", "error", "refused"]

_FAST = (0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
_LAG = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
_SLOW = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class _EngineCollector(Collector):
    """Reads EngineStats when scraped, so that a step costs nothing here."""

    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        s = self._stats()
        yield GaugeMetricFamily("paceline_running", "Sequences that take part in steps.", s.running)
        yield GaugeMetricFamily("paceline_waiting", "Requests that wait for a place.", s.waiting)
        blocks = GaugeMetricFamily("paceline_cache_blocks", "KV blocks by state.", labels=["state"])
        for state, value in (("free", s.blocks_free), ("cached", s.blocks_cached), ("held", s.blocks_held)):
            blocks.add_metric([state], value)
        yield blocks
        yield GaugeMetricFamily(
            "paceline_cache_blocks_pinned", "Cached KV blocks kept for conversations.", s.blocks_pinned
        )
        yield GaugeMetricFamily("paceline_last_step_age_seconds", "Time since the engine stepped.", s.last_step_age_s)
        counters: tuple[tuple[str, str, float], ...] = (
            ("steps", "Engine steps.", s.steps),
            ("generated_tokens", "Tokens generated.", s.generated_tokens),
            ("prompt_tokens", "Prompt tokens taken in.", s.prompt_tokens),
            ("prefix_hit_tokens", "Prompt tokens found in the prefix cache.", s.prefix_hit_tokens),
            ("preemptions", "Sequences put back to make room for others.", s.preemptions),
            ("step_seconds", "Time in steps.", s.step_ms / 1000),
            ("forward_seconds", "Time in steps inside the model's pass.", s.forward_ms / 1000),
        )
        for name, text, count in counters:
            yield CounterMetricFamily(f"paceline_{name}", text, count)
        note = f" Depth {len(s.guesses.drafted)} holds all that were deeper."
        yield from _by_depth("", note, [([], s.guesses)])
        drafters = [([name], counts) for name, counts in s.guesses_by_drafter]
        yield from _by_depth("drafter_", f"{note} A guess that several drafters made counts for each.", drafters)
        yield _by_size("sequences", "Sequences that had a part in a step.", s.step_sequences)
        yield _by_size("rows", "Rows that a step computed.", s.step_rows)
        trees = CounterMetricFamily("paceline_trees", "Trees verified, by why they had their size.", labels=["reason"])
        for reason, count in s.trees_by_reason:
            trees.add_metric([reason.replace(" ", "_")], count)
        yield trees


def _by_depth(prefix: str, note: str, counted: Sequence[tuple[list[str], GuessCounts]]) -> Iterable[Metric]:
    """counted: for each set of the labels that come before the depth."""
    labels = ["drafter", "depth"] if prefix else ["depth"]
    parts: tuple[tuple[str, str, Callable[[GuessCounts], Sequence[int]]], ...] = (
        ("drafted_tokens", "Drafted tokens by depth in the tree; 1 is the first guess.", lambda counts: counts.drafted),
        ("accepted_tokens", "Accepted draft tokens by depth in the tree.", lambda counts: counts.accepted),
        (
            "drafted_steps",
            "Trees with a guess of the depth, of which one at most is right.",
            lambda counts: counts.steps,
        ),
    )
    for name, text, of in parts:
        family = CounterMetricFamily(f"paceline_{prefix}{name}", text + note, labels=labels)
        for values, counts in counted:
            for depth, count in enumerate(of(counts), start=1):
                family.add_metric([*values, str(depth)], count)
        yield family


def _by_size(name: str, text: str, sizes: SizeCounts) -> Metric:
    bounds = [str(2**place) for place in range(len(sizes.counts) - 1)]
    buckets = list(zip([*bounds, "+Inf"], accumulate(sizes.counts), strict=True))
    return HistogramMetricFamily(f"paceline_step_{name}", text, buckets=buckets, sum_value=sizes.total)


class Metrics:
    """The server's own registry; nothing is shared between two servers of one process."""

    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_EngineCollector(stats))

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"paceline_{name}_seconds", text, registry=self.registry, buckets=buckets)

        self.ttft = histogram("time_to_first_token", "From the request to its first token.", _SLOW)
        self.tpot = histogram("time_per_output_token", "(end to end - first token) / (tokens - 1).", _FAST)
        self.itl = histogram("inter_token_latency", "Gap between two deltas of one reply.", _FAST)
        self.queued = histogram("queue_time", "From submission to the first step a request has a part in.", _SLOW)
        self.e2e = histogram("request_latency", "From the request to its last token.", _SLOW)
        self.loop_lag = histogram("event_loop_lag", "How late the event loop wakes what is due.", _LAG)
        self.sockets = Gauge("paceline_realtime_sockets", "Open realtime sockets.", registry=self.registry)
        self.replies = Counter(
            "paceline_replies", "Replies by protocol and end.", ["protocol", "outcome"], registry=self.registry
        )
        self.answers = Counter(
            "paceline_http_responses", "HTTP answers by route and status.", ["route", "status"], registry=self.registry
        )

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


class Meter:
    """The clock of one choice: fed once per delta. `started` is the time.perf_counter() of its request's arrival."""

    def __init__(self, metrics: Metrics, protocol: str, started: float) -> None:
        self._metrics = metrics
        self._protocol = protocol
        self._started = started
        self._first: float | None = None
        self._last = self._started
        self._tokens = 0
        self._ended = False

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds to the first token; None before it."""
        return None if self._first is None else (self._first - self._started) * 1000

    @property
    def tpot_ms(self) -> float | None:
        """Milliseconds per token after the first; None before the second."""
        if self._first is None or self._tokens < 2:
            return None
        return (self._last - self._first) * 1000 / (self._tokens - 1)

    def tokens(self, count: int, queued_ms: float = 0.0) -> None:
        """`count` tokens have arrived together; the request waited `queued_ms` for its first step."""
        if count == 0:
            return
        now = time.perf_counter()
        if self._first is None:
            self._first = now
            self._metrics.ttft.observe(now - self._started)
            self._metrics.queued.observe(queued_ms / 1000)
        else:
            self._metrics.itl.observe(now - self._last)
        self._last = now
        self._tokens += count

    def end(self, outcome: Outcome) -> None:
        """Counts once, whatever ends the reply first."""
        if self._ended:
            return
        self._ended = True
        self._metrics.replies.labels(self._protocol, outcome).inc()
        if outcome in ("stop", "length") and self._first is not None:
            self._metrics.e2e.observe(self._last - self._started)
            if (tpot_ms := self.tpot_ms) is not None:
                self._metrics.tpot.observe(tpot_ms / 1000)
