"""What the parts of the voice benchmark share: words nobody has said, rows of the record, the server's own figures."""

from __future__ import annotations

import random
import urllib.request
from collections.abc import Mapping
from typing import Any

from harness import Running
from prometheus_client.parser import text_string_to_metric_families

PLAIN = {"speculation": {"mode": "none"}, "temperature": 0}
ENDLESS = {"logit_bias": {"2": -100}}  # the default model's end token never comes
_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work government number night point home water room mother "
    "area money story fact month lot right study book eye job word business issue side kind head house service friend "
    "father power hour game line end member law car city community name president team minute idea body information "
    "back parent face others level office door health person art war history party result change morning reason"
)

Row = dict[str, Any]


def words(count: int, seed: object) -> list[str]:
    """Words nobody has said before: nothing of them is in a cache."""
    return random.Random(str(seed)).choices(_TEXT.split(), k=count)


def row(
    figure: str, value: float, bar: float | str = "", *, ms: float = 0.0, other_ms: float = 0.0, rounds: int = 1
) -> Row:
    """ms, other_ms: the two times a ratio is of, or the one and the step it is held against; 0 where there is none."""
    return {
        "figure": figure,
        "value": round(value, 4),
        "bar": bar if isinstance(bar, str) else round(bar, 3),
        "ms": round(ms, 2),
        "other_ms": round(other_ms, 2),
        "rounds": rounds,
    }


def figures(server: Running) -> dict[tuple[str, str], float]:
    """The server's own metrics by name and first label's value."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def lag_buckets(server: Running) -> dict[float, float]:
    """Seconds -> how often the event loop was at most that late."""
    name = "paceline_event_loop_lag_seconds_bucket"
    return {float(edge): count for (key, edge), count in figures(server).items() if key == name}


def quantile(cumulative: Mapping[float, float], q: float) -> float:
    """The q-quantile (0 … 1) of a histogram, linear inside a bucket; the last finite edge for what lies past it."""
    edges = sorted(cumulative)
    total = cumulative[edges[-1]]
    low, below = 0.0, 0.0
    for edge in edges:
        if cumulative[edge] >= q * total:
            if edge == float("inf"):
                return low
            inside = cumulative[edge] - below
            return low + (edge - low) * ((q * total - below) / inside if inside else 0.0)
        low, below = edge, cumulative[edge]
    return low
