"""The step as a whole: what is refused, order of events, and the distribution of what is sampled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from equality import Oracle
from fakes import RandomCheckpoint, Replies, assert_idle, finish, make_request, tiny_engine
from scipy.stats import chisquare

from paceline.engine.errors import OverloadedError, RequestError
from paceline.engine.request import Delta, Request, Speculation
from paceline.spec.proposer import Ask, Proposal, Verdict
from paceline.spec.suffix import Suffix

VOCAB = 61
PROMPT = list(range(20))


class Diary:
    """A drafter of random trees that writes down when it is asked, told and made to forget."""

    name = "diary"
    needs_hidden = False

    def __init__(self, vocab_size: int = VOCAB) -> None:
        self.events: list[tuple[str, str]] = []
        self._vocab_size = vocab_size
        self._pick = random.Random(5)

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        self.events += [("ask", ask.seq_id) for ask in asks]
        return [self._tree(ask.max_guesses) for ask in asks]

    def _tree(self, n: int) -> Proposal:
        tokens = tuple(self._pick.randrange(self._vocab_size) for _ in range(n))
        return Proposal(self.name, tokens, tuple(self._pick.randrange(-1, i) for i in range(n)), (0.9,) * n)

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self.events += [("observe", verdict.seq_id) for verdict in verdicts]

    def forget(self, seq_id: str) -> None:
        self.events.append(("forget", seq_id))

    def post(self, deltas: list[Delta]) -> None:
        self.events += [("post", delta.request_id) for delta in deltas]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=128)


# What is refused


@pytest.mark.parametrize(
    ("param", "request_"),
    [
        ("messages", make_request("r", [1] * 128)),
        ("messages", make_request("r", [1, VOCAB])),
        ("messages", make_request("r", [-1])),
        ("logit_bias", make_request("r", [1], logit_bias={VOCAB: 1.0})),
        ("speculation.mode", make_request("r", [1], mode="medusa")),
    ],
)
def test_a_request_that_cannot_run_names_its_field_and_leaves_no_trace(
    checkpoint: RandomCheckpoint, param: str, request_: Request
) -> None:
    engine = tiny_engine(checkpoint, [Suffix()])
    for refuse in (engine.validate, engine.submit):
        with pytest.raises(RequestError) as caught:
            refuse(request_)
        assert caught.value.param == param
        assert str(caught.value).endswith(".")
    assert_idle(engine)


def test_an_unknown_speculator_is_told_the_known_ones(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, [Suffix()])
    assert engine.speculators == ("auto", "suffix", "none")
    with pytest.raises(RequestError, match=r"'medusa'.*auto, suffix, none"):
        engine.validate(make_request("r", [1], mode="medusa"))


def test_a_full_queue_refuses(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, queue_limit=2, max_batch=1)
    for name in "abc":  # one has a place, two may wait
        engine.submit(make_request(name, [1]))
    with pytest.raises(OverloadedError):
        engine.submit(make_request("d", [1]))
    assert engine.stats().waiting == 3


def test_the_largest_values_run(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint)
    request = make_request("r", [VOCAB - 1] * 127, max_tokens=10**9, logit_bias={VOCAB - 1: 100.0}, temperature=1.0)
    replies = finish(engine, request)
    assert (replies.tokens("r"), replies.finish("r")) == ([VOCAB - 1], "length")


# Order of events


def test_the_reader_has_its_text_before_anyone_learns_from_it(checkpoint: RandomCheckpoint) -> None:
    diary = Diary()
    engine = tiny_engine(checkpoint, [diary])
    for name in "ab":
        engine.submit(make_request(name, PROMPT, max_tokens=12, temperature=0.8))
    while engine.has_work:
        del diary.events[:]
        alive = len(engine.scheduler.running)
        engine.step(diary.post)
        kinds = [kind for kind, _ in diary.events]
        assert kinds == sorted(kinds, key=["ask", "post", "observe", "forget"].index)
        assert kinds.count("post") == kinds.count("observe") >= max(alive, 1)


def test_the_first_token_leaves_before_anything_is_drafted(checkpoint: RandomCheckpoint) -> None:
    diary = Diary()
    engine = tiny_engine(checkpoint, [diary], step_budget=64, max_nodes=8)
    engine.submit(make_request("early", PROMPT[:4], max_tokens=60))
    for _ in range(3):
        engine.step(diary.post)
    for name in ("late", "late-again"):  # prefilled in chunks, beside a sequence that drafts
        engine.submit(make_request(name, [i % VOCAB for i in range(70)], max_tokens=8))
    while engine.has_work:
        engine.step(diary.post)
    for name in ("early", "late", "late-again"):
        mine = [kind for kind, owner in diary.events if owner == name]
        first = mine.index("post")
        assert mine[: first + 3] == [*["observe"] * first, "post", "observe", "ask"]  # chunks of a prompt make no text


def test_a_drafter_forgets_each_sequence_once_however_it_ends(checkpoint: RandomCheckpoint) -> None:
    diary = Diary()
    engine = tiny_engine(checkpoint, [diary], max_batch=4)
    for name in ("finished", "aborted", "cut", "failed", "never-ran"):
        engine.submit(make_request(name, PROMPT, max_tokens=3 if name == "finished" else 90))
    while not any(event == ("forget", "finished") for event in diary.events):
        engine.step(diary.post)
    engine.abort("aborted")
    engine.cut("cut", 1)
    engine.fail("broken", diary.post)
    forgotten = [owner for kind, owner in diary.events if kind == "forget"]
    assert sorted(forgotten) == ["aborted", "cut", "failed", "finished", "never-ran"]
    assert_idle(engine)


def test_nothing_to_do_is_nothing_done(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint)
    posts: list[list[Delta]] = []
    engine.step(posts.append)
    assert (posts, engine.stats().steps) == ([], 0)


# What a request allows


def test_a_request_chooses_its_drafter_and_the_size_of_its_trees(checkpoint: RandomCheckpoint) -> None:
    diary = Diary()
    engine = tiny_engine(checkpoint, [diary, Suffix()])
    names = ("auto", "none", "suffix", "small", "plain")
    base = [make_request(name, PROMPT, logit_bias={7: 100.0}) for name in names]  # replies that repeat themselves
    modes = {
        "none": Speculation(mode="none"),
        "suffix": Speculation(mode="suffix"),
        "small": Speculation(max_nodes=3),
        "plain": Speculation(max_nodes=1),
    }
    replies = finish(engine, *(replace(r, speculation=modes.get(r.id, Speculation())) for r in base))
    drafted = {name: max(delta.drafted for delta in deltas) for name, deltas in replies.deltas.items()}
    assert drafted["none"] == drafted["plain"] == 0
    assert drafted["small"] == 2
    assert drafted["auto"] > 2
    assert {owner for kind, owner in diary.events if kind == "ask"} == {"auto", "small"}
    sources = {name: {d.source for d in deltas if d.accepted} for name, deltas in replies.deltas.items()}
    assert sources["none"] == sources["plain"] == set()
    assert sources["suffix"] == {"suffix"}
    assert all(replies.tokens(name) == replies.tokens("none") for name in names)


def test_each_tree_says_why_it_has_its_size(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, [Diary(), Suffix()])
    base = [make_request(name, PROMPT, max_tokens=6) for name in ("off", "plain", "budget", "nothing")]
    modes = {
        "off": Speculation(mode="none"),
        "plain": Speculation(max_nodes=1),
        "budget": Speculation(max_nodes=2),
        "nothing": Speculation(mode="suffix"),
    }
    base[3] = replace(base[3], prompt=tuple(range(40, 50)))
    replies = finish(engine, *(replace(request, speculation=modes[request.id]) for request in base))
    reasons = {name: [delta.reason for delta in deltas] for name, deltas in replies.deltas.items()}
    assert all(each[0] == "prefill" for each in reasons.values())
    assert {*reasons["off"][1:], *reasons["plain"][1:]} == {"off"}
    assert "no guesses" in reasons["nothing"]
    assert reasons["budget"][1] in ("budget", "best")
    assert "no room" in [each[-1] for each in reasons.values()]  # the last token of a reply needs no guess
    counted = dict(engine.stats().trees_by_reason)
    assert {reason: sum(each.count(reason) for each in reasons.values()) for reason in counted} == counted


# The distribution


def test_sampled_tokens_follow_the_softmax_with_guesses_of_every_kind() -> None:
    """Tokens 1 and 2 jointly, chosen inside random trees, against the exact distribution of the model."""
    vocab, prompt, runs = 8, [3, 1, 4], 2500
    checkpoint = RandomCheckpoint(vocab, context_length=32, seed=4)
    oracle = Oracle(checkpoint)
    first = torch.softmax(oracle.logits(prompt)[-1].double(), -1)
    joint = torch.zeros(vocab, vocab, dtype=torch.float64)
    for zero in range(vocab):
        for one in range(vocab):
            rows = torch.softmax(oracle.logits([*prompt, zero, one])[-2:].double(), -1)
            joint[one] += first[zero] * rows[0, one] * rows[1]
    assert float(joint.sum()) == pytest.approx(1.0)

    engine = tiny_engine(checkpoint, [Diary(vocab)], max_batch=64, queue_limit=runs, max_nodes=8)
    for seed in range(runs):
        engine.submit(make_request(str(seed), prompt, max_tokens=8, temperature=1.0, seed=seed * 7919 + 13))
    replies = Replies()
    while engine.has_work:
        engine.step(replies)
        for seq in list(engine.scheduler.running):
            if seq.output_count >= 3:
                engine.abort(seq.id)
    outputs = [replies.tokens(str(seed))[:3] for seed in range(runs)]
    inside = sum(len(replies.deltas[str(seed)][1].tokens) > 1 for seed in range(runs))
    assert inside > runs / 5, "too few guesses were accepted to prove anything"

    observed = torch.zeros(vocab, vocab, dtype=torch.float64)
    for _, one, two in outputs:
        observed[one, two] += 1
    expected = joint.flatten() * runs
    rare = expected < 5
    cells = [torch.cat((t.flatten()[~rare], t.flatten()[rare].sum()[None])) for t in (observed, expected)]
    if not rare.any():
        cells = [cell[:-1] for cell in cells]
    assert len(cells[0]) > 20
    assert chisquare(cells[0].numpy(), cells[1].numpy()).pvalue > 1e-4
