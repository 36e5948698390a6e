"""Entries stand where they belong: guesses are right as long as the cache holds the line, whatever happened before."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from backends import guessing_reference
from line_model import LineModel, next_token
from model_drafters import first_choices

from paceline.kernels.backend import Ops, load
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cached_drafter import CachedDrafter, CacheState
from paceline.spec.draft_model import DraftModel
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.proposer import Ask, Proposal, Verdict

Make = Callable[[], tuple[CachedDrafter[Any], LineModel]]


def make_draft(ops: Ops | None = None) -> tuple[CachedDrafter[Any], LineModel]:
    model = LineModel(0)
    return DraftModel(model, None, ops or load(), token_ms=lambda: 1e9), model


def make_eagle(ops: Ops | None = None) -> tuple[CachedDrafter[Any], LineModel]:
    model = LineModel(1)
    return EagleDrafter(model, None, ops or load(), index=0, token_ms=lambda: 1e9), model  # type: ignore[arg-type]


def with_spine(make: Callable[..., tuple[CachedDrafter[Any], LineModel]]) -> Make:
    return lambda: make(guessing_reference())


MAKES = {"draft": make_draft, "eagle": make_eagle}
SPINED = {f"{name} with a spine": with_spine(make) for name, make in MAKES.items()}
both = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
spined_too = pytest.mark.parametrize("make", [*MAKES.values(), *SPINED.values()], ids=[*MAKES, *SPINED])


class Text:
    """One sequence as its engine would serve it. blocks: taken from `pool`; hits: blocks of a shared prefix."""

    def __init__(
        self, seq_id: str, prompt: list[int], pool: list[int], seed: int = 0, temperature: float = 0.0
    ) -> None:
        self.seq_id, self.tokens, self.prompt_length = seq_id, list(prompt), len(prompt)
        self.seed, self.temperature = seed, temperature
        self.blocks: list[int] = []
        self._pool = pool
        self.computed = 0

    def reserve(self, slots: int) -> None:
        while len(self.blocks) * BLOCK_SIZE < slots:
            self.blocks.append(self._pool.pop())

    def truth(self, line: list[int]) -> int:
        return next_token(tuple(line), len(line), self.seed, self.temperature)

    def prefill(self, drafter: CachedDrafter[Any], chunk: int = 100) -> None:
        end = len(self.tokens)
        while self.computed < end:
            count = min(chunk, end - self.computed)
            self.reserve(self.computed + count)
            last = self.computed + count == end
            self.commit(drafter, count, [self.truth(self.tokens)] if last else [])

    def commit(self, drafter: CachedDrafter[Any], count: int, new: list[int]) -> None:
        """`count` nodes are accepted, and these tokens come."""
        positions = np.arange(self.computed, self.computed + count, dtype=np.float32)[:, None]
        verdict = Verdict(self.seq_id, tuple(range(count)), start=self.computed, features=(positions,))
        self.tokens += new
        self.computed += count
        if new:
            assert self.computed == len(self.tokens) - 1
        drafter.observe([verdict])

    def ask(self, most: int = 16) -> Ask:
        self.reserve(self.computed + 1 + most)
        return Ask(self.seq_id, self.tokens, self.prompt_length, most, self.blocks, self.seed, self.temperature)

    def right(self, proposal: Any) -> int:
        """Length of the first choices, all of which must be true."""
        line = list(self.tokens)
        for token in first_choices(proposal):
            assert token == self.truth(line)
            line.append(token)
        return len(line) - len(self.tokens)

    def go_on(self, drafter: CachedDrafter[Any], accepted: int, surprise: int | None = None) -> None:
        new: list[int] = []
        for _ in range(accepted + 1):
            new.append(self.truth([*self.tokens, *new]))
        if surprise is not None:
            new[-1] = surprise
        self.commit(drafter, accepted + 1, new)


def caught_up(drafter: CachedDrafter[Any], text: Text) -> Proposal:
    """What it guesses, asked as often as catching up takes."""
    while (proposal := drafter.propose([text.ask()])[0]).catching_up:
        assert proposal.tokens == ()
    return proposal


def prompt_of(length: int, seed: int = 1) -> list[int]:
    pick = random.Random(seed)
    return [pick.randrange(50) for _ in range(length)]


@spined_too
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_first_choices_are_right_whatever_was_accepted_before(make: Make, temperature: float) -> None:
    drafter, _ = make()
    pick = random.Random(5)
    pool = list(range(200))
    pick.shuffle(pool)
    texts = [Text(f"s{i}", prompt_of(20 + 13 * i, i), pool, 9 + i, temperature) for i in range(3)]
    for text in texts:
        text.prefill(drafter)
    lengths = []
    for step in range(40):
        asked = texts if step % 7 else []  # in some steps nobody asks
        for text, proposal in zip(asked, drafter.propose([text.ask() for text in asked]), strict=True):
            if not proposal.catching_up:
                lengths.append(text.right(proposal))
        for text in texts:
            text.go_on(drafter, pick.randrange(4), pick.choice([None, pick.randrange(50)]))
    assert len(lengths) > 90
    assert min(lengths) >= 1
    assert sum(lengths) / len(lengths) > 2


@spined_too
def test_a_preempted_sequence_starts_again_in_other_blocks(make: Make) -> None:
    drafter, _ = make()
    pool = list(range(100))
    text = Text("s", prompt_of(40), pool)
    text.prefill(drafter)
    text.right(caught_up(drafter, text))
    text.go_on(drafter, 2)
    other = Text("t", prompt_of(60, 3), text.blocks[:])  # takes its blocks
    text.blocks, text.computed = [], 0
    other._pool += pool[:20]
    other.prefill(drafter)
    assert other.right(caught_up(drafter, other)) >= 1
    text.prefill(drafter)
    assert text.right(caught_up(drafter, text)) >= 1


@spined_too
def test_a_shared_prefix_serves_the_next_sequence(make: Make) -> None:
    drafter, model = make()
    prompt = prompt_of(70)
    pool = list(range(100))
    first = Text("a", prompt, pool)
    first.prefill(drafter)
    first.right(caught_up(drafter, first))
    drafter.forget("a")
    second = Text("b", [*prompt[:66], 1, 2, 3], pool)
    second.blocks, second.computed = first.blocks[:4], 64
    second.prefill(drafter)
    model.rows = 0
    drafter.deepest = 1
    assert second.right(caught_up(drafter, second)) == 1
    assert model.rows == len(second.tokens) - drafter.behind - 64
    # Blocks that others wrote to since hold it no more.
    third = Text("c", prompt_of(90, 8), first.blocks[3:4] + first.blocks[:3])
    third._pool += pool[:20]
    third.prefill(drafter)
    caught_up(drafter, third)
    fourth = Text("d", [*prompt[:66], 1, 2, 3], pool)
    fourth.blocks, fourth.computed = first.blocks[:4], 64
    fourth.prefill(drafter)
    assert fourth.right(caught_up(drafter, fourth)) == 1


class Clock:
    """Runs only while the drafter's model does: a row takes 0.1 ms. A plain step takes 10 ms."""

    TOKEN_MS, ROW_MS = 10.0, 0.1

    def __init__(self, monkeypatch: pytest.MonkeyPatch, drafter: CachedDrafter[Any], model: LineModel) -> None:
        for module in ("cached_drafter", "tree_drafter"):
            monkeypatch.setattr(f"paceline.spec.{module}.time", SimpleNamespace(perf_counter=lambda: self.ms / 1e3))
        self.ms = 0.0
        self._inner = model.forward
        model.forward = self._forward  # type: ignore[method-assign]
        drafter._token_ms = lambda: self.TOKEN_MS
        drafter.deepest = 1

    def _forward(self, batch: Any, cache: Any) -> Any:
        self.ms += self.ROW_MS * len(batch.ids)
        return self._inner(batch, cache)


@both
def test_a_long_prompt_delays_a_stream_beside_it_by_a_plain_step_at_most(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter, model = make()
    clock = Clock(monkeypatch, drafter, model)
    pool = list(range(400))
    beside, long = Text("a", prompt_of(20), pool), Text("b", prompt_of(1300, 2), pool)
    beside.prefill(drafter)
    assert beside.right(caught_up(drafter, beside)) == 1
    beside.go_on(drafter, 0)
    long.prefill(drafter, 512)
    delays = []
    for _ in range(80):
        start = clock.ms
        proposals = drafter.propose([beside.ask(), long.ask()])
        delays.append(clock.ms - start)
        assert beside.right(proposals[0]) == 1
        if proposals[1].tokens:
            break
        beside.go_on(drafter, 0)
        long.go_on(drafter, 0)
    assert long.right(proposals[1]) == 1
    assert max(delays) < 1.2 * clock.TOKEN_MS
    entered = model.rows - 20
    assert sum(delay > 2.0 for delay in delays) < 3 + entered / 80, "a pass of catching up is no short one"


@both
def test_what_is_due_is_priced_as_an_investment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 0.1 ms a row: a long prompt is left alone until the reply is long enough to go on for as long as pays."""
    drafter, model = make()
    clock = Clock(monkeypatch, drafter, model)
    text = Text("s", prompt_of(1300), list(range(400)))
    text.prefill(drafter, 512)
    assert drafter.cost_ms([text.ask()]) == clock.TOKEN_MS / 2, "not measured yet, and not free"
    assert drafter.propose([text.ask()])[0].catching_up
    assert clock.ms == pytest.approx(3.2), "a short pass tells what a row takes"
    while (cost := drafter.cost_ms([text.ask()])) == 0.0:
        assert drafter.propose([text.ask()])[0].catching_up
        assert model.rows == 32
        text.go_on(drafter, 0)
    replied = len(text.tokens) - text.prompt_length
    due = drafter._due(text.ask())
    assert due * clock.ROW_MS / replied <= clock.TOKEN_MS / 2 < due * clock.ROW_MS / (replied - 1)
    assert cost == pytest.approx(clock.TOKEN_MS / 2 + due * clock.ROW_MS / replied)
    assert text.right(caught_up(drafter, text)) == 1
    text.go_on(drafter, 0)
    assert 0 < drafter.cost_ms([text.ask()]) <= 8 * clock.ROW_MS, "what an ordinary call takes"


@spined_too
def test_guesses_stay_inside_of_the_slots_and_the_number_asked_for(make: Make) -> None:
    drafter, _ = make()
    text = Text("s", prompt_of(30), list(range(100)))
    text.prefill(drafter)
    ask = text.ask(3)
    ask = Ask(ask.seq_id, ask.tokens, ask.prompt_length, 3, ask.blocks[:2], 0, 0.0)  # slot 31 is the last one
    proposal = drafter.propose([ask])[0]
    assert 1 <= len(proposal.tokens) <= 3
    assert text.right(proposal) >= 1


def test_one_without_hidden_states_is_not_drafted_for() -> None:
    drafter, _ = make_eagle()
    text = Text("s", prompt_of(30), list(range(100)))
    assert drafter.propose([text.ask()])[0].tokens == ()
    text.prefill(drafter)
    drafter.forget("s")
    assert drafter.propose([text.ask()])[0].tokens == ()


def test_a_mark_stands_for_all_tokens_up_to_the_end_of_its_block() -> None:
    texts = [prompt_of(64), prompt_of(64), [9, *prompt_of(64)[1:]]]
    marks = [[CacheState(0, 0).mark(text, block) for block in range(4)] for text in texts]
    assert marks[0] == marks[1]
    assert not set(marks[0]) & set(marks[2])
