from __future__ import annotations

import json
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from paceline.engine.tallies import GuessCounts, SizeCounts
from paceline.engine.telemetry import EngineStats
from paceline.server.metrics import Meter, Metrics

ROOT = Path(__file__).parents[2]
STATS = EngineStats(
    running=2,
    waiting=3,
    blocks_total=10,
    blocks_free=2,
    blocks_cached=3,
    blocks_pinned=2,
    blocks_held=5,
    steps=7,
    last_step_age_s=0.5,
    stuck=False,
    generated_tokens=11,
    prompt_tokens=20,
    prefix_hit_tokens=6,
    preemptions=1,
    guesses=GuessCounts((9, 4), (5, 1), (6, 4)),
    guesses_by_drafter=(
        ("heads", GuessCounts((8, 1), (5, 0), (6, 1))),
        ("suffix", GuessCounts((3, 4), (2, 1), (3, 3))),
    ),
    trees_by_reason=(("best", 3), ("no guesses", 2)),
    step_ms=1500.0,
    forward_ms=500.0,
    step_sequences=SizeCounts((4, 2, 0, 1), 31),
    step_rows=SizeCounts((0, 1, 5, 1), 60),
)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"paceline_{name}", labels)


def test_the_engines_counters_are_read_at_each_scrape() -> None:
    metrics = Metrics(lambda: STATS)
    assert value(metrics, "running") == 2
    assert value(metrics, "waiting") == 3
    assert [value(metrics, "cache_blocks", state=s) for s in ("free", "cached", "held")] == [2, 3, 5]
    assert value(metrics, "cache_blocks_pinned") == 2
    assert value(metrics, "prefix_hit_tokens_total") == 6
    assert [value(metrics, "drafted_tokens_total", depth=d) for d in ("1", "2")] == [9, 4]
    assert [value(metrics, "accepted_tokens_total", depth=d) for d in ("1", "2")] == [5, 1]
    assert [value(metrics, "trees_total", reason=r) for r in ("best", "no_guesses")] == [3, 2]


def test_guesses_are_told_by_drafter_and_depth() -> None:
    metrics = Metrics(lambda: STATS)
    assert [value(metrics, "drafted_steps_total", depth=d) for d in ("1", "2")] == [6, 4]
    for name, (drafted, accepted, steps) in STATS.guesses_by_drafter:
        for i in range(2):
            labels = {"drafter": name, "depth": str(i + 1)}
            assert value(metrics, "drafter_drafted_tokens_total", **labels) == drafted[i]
            assert value(metrics, "drafter_accepted_tokens_total", **labels) == accepted[i]
            assert value(metrics, "drafter_drafted_steps_total", **labels) == steps[i]


def test_the_deepest_depth_says_what_it_holds() -> None:
    families = text_string_to_metric_families(Metrics(lambda: STATS).exposition().decode())
    by_depth = [f for f in families if any("depth" in sample.labels for sample in f.samples)]
    assert len(by_depth) == 6
    assert all("Depth 2 holds all that were deeper." in family.documentation for family in by_depth)


def test_what_steps_took_and_how_large_they_were() -> None:
    metrics = Metrics(lambda: STATS)
    assert (value(metrics, "step_seconds_total"), value(metrics, "forward_seconds_total")) == (1.5, 0.5)
    buckets = [value(metrics, "step_sequences_bucket", le=le) for le in ("1", "2", "4", "+Inf")]
    assert buckets == [4, 6, 6, 7]
    assert (value(metrics, "step_sequences_sum"), value(metrics, "step_sequences_count")) == (31, 7)
    assert value(metrics, "step_rows_bucket", le="4") == 6


def test_prometheus_can_read_the_page() -> None:
    names = {family.name for family in text_string_to_metric_families(Metrics(lambda: STATS).exposition().decode())}
    wanted = (
        "time_to_first_token_seconds time_per_output_token_seconds inter_token_latency_seconds request_latency_seconds"
    )
    assert {f"paceline_{name}" for name in (*wanted.split(), "replies", "http_responses", "preemptions")} <= names


def test_two_servers_share_nothing() -> None:
    first, second = Metrics(lambda: STATS), Metrics(lambda: STATS)
    Meter(first, "chat", time.perf_counter()).end("stop")
    assert value(first, "replies_total", protocol="chat", outcome="stop") == 1
    assert value(second, "replies_total", protocol="chat", outcome="stop") is None


def test_a_reply_is_measured_by_its_deltas() -> None:
    metrics = Metrics(lambda: STATS)
    meter = Meter(metrics, "chat", time.perf_counter())
    assert meter.ttft_ms is None
    for count in (1, 0, 3, 2):
        meter.tokens(count)
    meter.end("length")
    meter.end("cancelled")
    assert meter.ttft_ms is not None
    assert value(metrics, "time_to_first_token_seconds_count") == 1
    assert value(metrics, "inter_token_latency_seconds_count") == 2
    assert value(metrics, "time_per_output_token_seconds_count") == 1
    assert value(metrics, "request_latency_seconds_count") == 1
    ttft, gaps = (value(metrics, f"{n}_seconds_sum") for n in ("time_to_first_token", "inter_token_latency"))
    e2e, tpot = (value(metrics, f"{n}_seconds_sum") for n in ("request_latency", "time_per_output_token"))
    assert ttft is not None
    assert gaps is not None
    assert e2e is not None
    assert tpot is not None
    assert abs(ttft + gaps - e2e) < 1e-9
    assert abs(tpot * 5 - gaps) < 1e-9  # six tokens, five of them after the first
    assert value(metrics, "replies_total", protocol="chat", outcome="length") == 1
    assert value(metrics, "replies_total", protocol="chat", outcome="cancelled") is None


def test_cancelled_replies_do_not_count_as_fast_ones() -> None:
    metrics = Metrics(lambda: STATS)
    meter = Meter(metrics, "chat", time.perf_counter())
    meter.tokens(2)
    meter.end("cancelled")
    assert value(metrics, "request_latency_seconds_count") == 0


def test_the_dashboard_finds_every_family_that_it_reads() -> None:
    families = json.loads((ROOT / "web" / "src" / "dashboard" / "families.json").read_text())
    metrics = Metrics(lambda: STATS)
    meter = Meter(metrics, "chat", time.perf_counter())
    meter.end("stop")
    metrics.answers.labels("/metrics", "200").inc()
    told = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        told[name] = (family.type, labels)
    for family in families.values():
        assert told.get(family["name"]) == (family["kind"], set(family["labels"])), family["name"]
