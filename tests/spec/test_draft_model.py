"""A draft model that is the target itself guesses what the target says: any slip in cache or positions shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from backends import ops_or_skip
from equality import SAMPLINGS, VOCAB, plain_replies, requests_for
from fakes import RandomCheckpoint, make_request, run, tiny_engine
from model_drafters import CountedModel, Watched, draft_model

from paceline.engine.request import Request
from paceline.spec.cached_model import CachedModel
from paceline.spec.draft_model import TrimmedModel

BACKENDS: dict[str, dict[str, Any]] = {
    "reference": {"backend": "reference"},
    "native": {"backend": "native", "threads": 1, "weights": "q8"},
}


@pytest.fixture(params=BACKENDS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    ops_or_skip(request.param)
    return BACKENDS[request.param]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, head_dim=16)


def accepted(requests: Sequence[Request], watched: Watched, replies: Any) -> tuple[int, int]:
    """(chains that are right to their end, chains) of first choices, as far as the reply goes."""
    truth = {request.prompt: (*request.prompt, *replies.tokens(request.id)) for request in requests}
    right = 0
    for text, prompt_length, chain in watched.chains:
        whole = truth[text[:prompt_length]]
        assert whole[: len(text)] == text
        expected = whole[len(text) : len(text) + len(chain)]
        right += chain[: len(expected)] == expected
    return right, len(watched.chains)


@pytest.mark.parametrize("sampling", ["greedy", "seeded"])
@pytest.mark.parametrize("together", [False, True])
def test_the_target_as_its_own_draft_model_is_right(
    checkpoint: RandomCheckpoint, options: dict[str, Any], sampling: str, together: bool
) -> None:
    requests = requests_for(SAMPLINGS[sampling])
    watched = Watched(draft_model(checkpoint, options))
    engine = tiny_engine(checkpoint, [watched], **options)
    replies = run(engine, requests, together=together)
    right, chains = accepted(requests, watched, replies)
    assert chains > 20
    assert right == chains
    deltas = [delta for request in requests for delta in replies.deltas[request.id]]
    assert sum(delta.accepted for delta in deltas) > 0.6 * sum(len(delta.tokens) for delta in deltas)


@pytest.mark.parametrize("blocks", [8, None])
def test_it_is_right_after_preemption_and_prefix_hits(
    checkpoint: RandomCheckpoint, options: dict[str, Any], blocks: int | None
) -> None:
    requests = requests_for({}, count=8)
    watched = Watched(draft_model(checkpoint, options))
    engine = tiny_engine(checkpoint, [watched], blocks=blocks, max_nodes=6, **options)
    run(engine, requests)
    assert (engine.stats().preemptions > 0) == (blocks is not None)
    again = run(engine, requests)
    right, chains = accepted(requests, watched, again)
    assert chains > 40
    assert right == chains
    hits = sum(again.deltas[request.id][0].cached_tokens for request in requests)
    assert hits > 0 or blocks is not None


def test_a_shared_prefix_is_not_computed_again(checkpoint: RandomCheckpoint) -> None:
    counted: list[CountedModel] = []

    def count(model: CachedModel) -> CachedModel:
        counted.append(CountedModel(model))
        return counted[0]

    drafter = draft_model(checkpoint, {}, count)
    drafter.deepest = 1  # every row is an entry
    engine = tiny_engine(checkpoint, [Watched(drafter)])
    prompt = [3, 14, 15, 92, 65] * 14
    rows = []
    for name in ("first", "second"):
        counted[0].rows = 0
        run(engine, [make_request(name, prompt, max_tokens=8)])
        rows.append(counted[0].rows)
    assert rows[0] > 70
    assert rows[1] < 70 - 64 + 8  # four full blocks of the prompt are there, a reply of 8 tokens is not


def test_a_prompt_longer_than_a_pass(checkpoint: RandomCheckpoint) -> None:
    long = RandomCheckpoint(VOCAB, context_length=2048)
    request = make_request("r", [5, 9, 70, 33, 2, 8] * 200, max_tokens=12)
    watched = Watched(draft_model(long, {}))
    replies = run(tiny_engine(long, [watched]), [request])
    right, chains = accepted([request], watched, replies)
    assert 0 < right == chains


def test_wrong_guesses_leave_no_trace(checkpoint: RandomCheckpoint, options: dict[str, Any]) -> None:
    """Under penalties the target often decides otherwise; what it then writes is followed again."""
    requests = requests_for(SAMPLINGS["seeded-penalties-bias"])
    plain = plain_replies(checkpoint, requests, **options)
    watched = Watched(draft_model(checkpoint, options))
    replies = run(tiny_engine(checkpoint, [watched], **options), requests)
    right, chains = accepted(requests, watched, replies)
    assert 0 < right < chains
    assert all(replies.tokens(request.id) == plain.tokens(request.id) for request in requests)
    # The same texts, now asked for without penalties: nothing left over from wrong branches leads astray.
    follow = [
        make_request(f"f{i}", [*request.prompt, *plain.tokens(request.id)], max_tokens=10)
        for i, request in enumerate(requests)
    ]
    watched.chains.clear()
    replies = run(tiny_engine(checkpoint, [watched], **options), follow)
    right, chains = accepted(follow, watched, replies)
    assert right == chains


@pytest.mark.parametrize("ids", [VOCAB - 20, VOCAB + 20])
def test_tables_padded_to_other_sizes(checkpoint: RandomCheckpoint, options: dict[str, Any], ids: int) -> None:
    """Tokens the draft model lacks are read as others, and what the target lacks is never guessed."""
    small = RandomCheckpoint(ids, head_dim=16)
    requests = requests_for({})
    watched = Watched(draft_model(small, options, lambda model: TrimmedModel(model, ids, VOCAB)))
    replies = run(tiny_engine(checkpoint, [watched], **options), requests)
    assert watched.chains
    assert all(token < min(ids, VOCAB) for _, _, chain in watched.chains for token in chain)
    plain = plain_replies(checkpoint, requests, **options)
    assert all(replies.tokens(request.id) == plain.tokens(request.id) for request in requests)


def test_no_pass_is_made_that_does_not_pay(checkpoint: RandomCheckpoint) -> None:
    request = make_request("r", [1, 2, 3, 4], max_tokens=10)
    lengths = []
    for token_ms in (0.0, 1e9):
        watched = Watched(draft_model(checkpoint, {}, token_ms=token_ms))
        run(tiny_engine(checkpoint, [watched]), [request])
        lengths.append(max(len(chain) for _, _, chain in watched.chains))
    assert lengths[0] == 1
    assert lengths[1] >= 3


@pytest.mark.parametrize("sampling", ["greedy", "seeded"])
@pytest.mark.parametrize("ids", [VOCAB, VOCAB - 20, VOCAB + 20])
def test_its_first_pass_goes_on_from_its_own_guesses(checkpoint: RandomCheckpoint, sampling: str, ids: int) -> None:
    """What it guesses is what a pass per level guesses; and right where it is the target itself."""
    small = RandomCheckpoint(ids, head_dim=16)
    requests = requests_for(SAMPLINGS[sampling])
    guesses: list[dict[tuple[int, ...], tuple[int, ...]]] = []
    for spine in (False, True):
        watched = Watched(draft_model(small, {}, lambda model: TrimmedModel(model, ids, VOCAB), spine=spine))
        replies = run(tiny_engine(checkpoint, [watched]), requests, together=True)
        guesses.append({text: chain for text, _, chain in watched.chains})
    right, count = accepted(requests, watched, replies)
    assert right == count or ids != VOCAB
    both = guesses[0].keys() & guesses[1].keys()
    assert len(both) > 15
    for text in both:
        assert all(one == other for one, other in zip(guesses[0][text], guesses[1][text], strict=False))
