"""Promise 1 for drafters that read the model's states or have a cache of their own: loaded from files, as served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from backends import ops_or_skip
from equality import SAMPLINGS, VOCAB, Oracle, Record, assert_equal, plain_replies, requests_for
from fakes import RandomCheckpoint, Replies, run, tiny_engine
from tiny_heads import heads_tensors, write_eagle, write_own, write_published, write_recurrent
from tiny_models import make_folder

from paceline.engine.request import Request

BACKENDS: dict[str, dict[str, Any]] = {
    "reference": {"backend": "reference"},
    "native": {"backend": "native", "threads": 1, "weights": "q4", "kv_format": "int8"},
}
TRAINED = ("draft", "eagle", "hydra", "medusa", "recurrent", "published-medusa", "all")
SLOW = {1: 1e4, 100_000: 1e4}  # a machine whose steps take so long that any drafter is worth asking


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, head_dim=16)


@pytest.fixture(scope="module")
def folders(checkpoint: RandomCheckpoint, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root, hidden = tmp_path_factory.mktemp("drafters"), checkpoint.config.hidden_size
    return {
        "draft": make_folder(root / "draft", "llama2", vocab_size=VOCAB),
        "eagle": write_eagle(root / "eagle", checkpoint.config),
        "hydra": write_own(root / "hydra", "PacelineHydra", heads_tensors(hidden, hydra=True)),
        "medusa": write_own(root / "medusa", "PacelineMedusa", heads_tensors(hidden, layers=2), [*range(0, VOCAB, 2)]),
        "recurrent": write_recurrent(root / "recurrent", checkpoint.config, [*range(0, VOCAB, 2)]),
        "published-medusa": write_published(root / "published", heads_tensors(hidden, guessable=VOCAB)),
    }


@pytest.fixture(scope="module", params=BACKENDS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    ops_or_skip(request.param)
    return BACKENDS[request.param]


@pytest.fixture(scope="module", params=["greedy", "seeded-penalties-bias"])
def plain(
    request: pytest.FixtureRequest, checkpoint: RandomCheckpoint, options: dict[str, Any]
) -> tuple[list[Request], Replies]:
    requests = requests_for(SAMPLINGS[request.param], count=8)
    return requests, plain_replies(checkpoint, requests, **options)


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_drafter_gives_the_plain_reply(
    checkpoint: RandomCheckpoint,
    folders: dict[str, Path],
    options: dict[str, Any],
    plain: tuple[list[Request], Replies],
    name: str,
    record_property: Record,
) -> None:
    """Alone; then as a batch with prefix hits; then as a batch that preempts."""
    requests, expected = plain
    wanted = ("draft", "eagle", "hydra", "medusa", "recurrent") if name == "all" else (name,)
    speculator = ",".join(["suffix"] * (name == "all") + [str(folders[each]) for each in wanted])
    oracle = Oracle(checkpoint) if options["backend"] == "reference" else None
    engine = tiny_engine(checkpoint, None, cost=SLOW, speculator=speculator, **options)
    small = tiny_engine(checkpoint, None, cost=SLOW, speculator=speculator, blocks=8, max_nodes=6, **options)
    deltas = []
    for served, together in ((engine, False), (engine, True), (small, True)):
        replies = run(served, requests, together=together)
        assert_equal(oracle, requests, expected, replies, record_property)
        deltas += [delta for reply in replies.deltas.values() for delta in reply]
    assert small.stats().preemptions > 0
    assert engine.stats().prefix_hit_tokens > 0
    assert sum(delta.drafted for delta in deltas) > 300
    assert sum(delta.accepted for delta in deltas) > 0
