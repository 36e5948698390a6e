"""Entries stand where they belong: guesses are right as long as the cache holds the line, whatever happened before."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from line_model import LineModel, next_token
from model_drafters import first_choices

from paceline.kernels.backend import load
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cached_drafter import CachedDrafter, CacheState
from paceline.spec.draft_model import DraftModel
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.proposer import Ask, Verdict

Make = Callable[[], tuple[CachedDrafter[Any], LineModel]]


def make_draft(token_ms: float = 1e9) -> tuple[CachedDrafter[Any], LineModel]:
    model = LineModel(0)
    return DraftModel(model, None, load(), token_ms=lambda: token_ms), model


def make_eagle(token_ms: float = 1e9) -> tuple[CachedDrafter[Any], LineModel]:
    model = LineModel(1)
    return EagleDrafter(model, None, load(), index=0, token_ms=lambda: token_ms), model  # type: ignore[arg-type]


both = pytest.mark.parametrize("make", [make_draft, make_eagle], ids=["draft", "eagle"])


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


def prompt_of(length: int, seed: int = 1) -> list[int]:
    pick = random.Random(seed)
    return [pick.randrange(50) for _ in range(length)]


@both
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
            lengths.append(text.right(proposal))
        for text in texts:
            text.go_on(drafter, pick.randrange(4), pick.choice([None, pick.randrange(50)]))
    assert min(lengths) >= 1
    assert sum(lengths) / len(lengths) > 2


@both
def test_a_preempted_sequence_starts_again_in_other_blocks(make: Make) -> None:
    drafter, _ = make()
    pool = list(range(100))
    text = Text("s", prompt_of(40), pool)
    text.prefill(drafter)
    text.right(drafter.propose([text.ask()])[0])
    text.go_on(drafter, 2)
    other = Text("t", prompt_of(60, 3), text.blocks[:])  # takes its blocks
    text.blocks, text.computed = [], 0
    other._pool += pool[:20]
    other.prefill(drafter)
    assert other.right(drafter.propose([other.ask()])[0]) >= 1
    text.prefill(drafter)
    assert text.right(drafter.propose([text.ask()])[0]) >= 1


@both
def test_a_shared_prefix_serves_the_next_sequence(make: Make) -> None:
    drafter, model = make()
    prompt = prompt_of(70)
    pool = list(range(100))
    first = Text("a", prompt, pool)
    first.prefill(drafter)
    first.right(drafter.propose([first.ask()])[0])
    drafter.forget("a")
    second = Text("b", [*prompt[:66], 1, 2, 3], pool)
    second.blocks, second.computed = first.blocks[:4], 64
    second.prefill(drafter)
    model.rows = 0
    drafter._token_ms = lambda: 0.0
    assert second.right(drafter.propose([second.ask()])[0]) == 1
    assert model.rows == len(second.tokens) - drafter.behind - 64
    # Blocks that others wrote to since hold it no more.
    third = Text("c", prompt_of(90, 8), first.blocks[3:4] + first.blocks[:3])
    third._pool += pool[:20]
    third.prefill(drafter)
    drafter.propose([third.ask()])
    fourth = Text("d", [*prompt[:66], 1, 2, 3], pool)
    fourth.blocks, fourth.computed = first.blocks[:4], 64
    fourth.prefill(drafter)
    assert fourth.right(drafter.propose([fourth.ask()])[0]) == 1


@both
def test_a_long_prompt_is_entered_in_several_passes(make: Make) -> None:
    drafter, _ = make()
    text = Text("s", prompt_of(1300), list(range(200)))
    text.prefill(drafter, 512)
    assert text.right(drafter.propose([text.ask()])[0]) >= 1
    assert drafter.cost_ms([text.ask()]) == 0.0, "no ordinary step takes as long"
    text.go_on(drafter, 1)
    assert text.right(drafter.propose([text.ask()])[0]) >= 1
    assert drafter.cost_ms([text.ask()]) > 0.0


@both
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
