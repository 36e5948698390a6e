"""Penalties, bias, noise and log-probabilities against plain loops over the definition."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes import make_request
from grammars import TOO_WIDE, small_tokenizer
from numpy.typing import NDArray

from paceline.engine.errors import GrammarError
from paceline.engine.request import SamplingParams
from paceline.engine.sampling import Chooser, mask_logits, process_logits, token_logprob
from paceline.engine.sequence import Sequence
from paceline.kernels.backend import BackendError, Ops, Options, load
from paceline.kernels.sample import Draw, Logits
from paceline.kernels.sample.reference import gumbel
from paceline.server.grammars import Grammars

VOCAB = 40


def params(**fields: object) -> SamplingParams:
    return SamplingParams(**{"max_tokens": 9, "seed": 5, **fields})  # type: ignore[arg-type]


def processed(logits: Seq[float], p: SamplingParams, prompt: Seq[int], output: Seq[int]) -> list[float]:
    """Every rule spelled out for one token after the other."""
    result = []
    for token, value in enumerate(logits):
        if token in prompt or token in output:
            value = value / p.repetition_penalty if value > 0 else value * p.repetition_penalty
        count = sum(1 for other in output if other == token)
        value -= p.frequency_penalty * count
        if count > 0:
            value -= p.presence_penalty
        result.append(value + p.logit_bias.get(token, 0.0))
    return result


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 0.6},
        {"frequency_penalty": 0.7},
        {"frequency_penalty": -1.5},
        {"presence_penalty": 1.2},
        {"logit_bias": {0: 3.5, 7: -100.0, 39: 0.25}},
        {
            "repetition_penalty": 1.3,
            "frequency_penalty": 0.4,
            "presence_penalty": -0.3,
            "logit_bias": {3: 2.0, 4: -1.0},
        },
    ],
    ids=lambda fields: "-".join(fields) or "none",
)
@pytest.mark.parametrize("lengths", [(1, 0), (12, 0), (5, 30)])
def test_processed_logits_follow_the_definition(fields: dict[str, object], lengths: tuple[int, int]) -> None:
    pick = random.Random(3)
    logits = [pick.uniform(-8, 8) for _ in range(VOCAB)]
    prompt, output = ([pick.randrange(VOCAB) for _ in range(length)] for length in lengths)
    before = np.array(logits, np.float32)
    before.flags.writeable = False  # rows may be the backend's own memory
    after = process_logits(before, params(**fields), prompt, output)
    assert after.tolist() == pytest.approx(processed(logits, params(**fields), prompt, output), abs=1e-5)
    assert after.dtype == np.float32


def test_a_token_counts_once_for_repetition_however_often_it_was_seen() -> None:
    after = process_logits(np.array([4.0, -4.0, 1.0], np.float32), params(repetition_penalty=2.0), [0, 0, 1], [0, 1, 1])
    assert after.tolist() == [2.0, -8.0, 1.0]


@pytest.mark.parametrize("alternatives", [0, 1, 5, 20])
def test_logprobs_are_a_log_softmax(alternatives: int) -> None:
    pick = random.Random(1)
    logits = [pick.uniform(-30, 30) for _ in range(VOCAB)]
    top = max(logits)
    total = top + math.log(sum(math.exp(value - top) for value in logits))
    entry = token_logprob(np.array(logits, np.float32), 11, alternatives)
    assert entry.token == 11
    assert entry.logprob == pytest.approx(logits[11] - total, abs=1e-4)
    likeliest = sorted(range(VOCAB), key=lambda token: -logits[token])[:alternatives]
    assert [token for token, _ in entry.top] == likeliest
    assert [value for _, value in entry.top] == pytest.approx([logits[t] - total for t in likeliest], abs=1e-4)


def test_no_more_alternatives_than_there_are_tokens() -> None:
    entry = token_logprob(np.array([0.0, 1.0, 2.0], np.float32), 0, 20)
    assert [token for token, _ in entry.top] == [2, 1, 0]
    assert sum(math.exp(value) for _, value in entry.top) == pytest.approx(1.0)


def test_alternatives_that_tie_come_in_order_of_their_ids() -> None:
    logits = np.array([1.0, 5.0, 3.0, 5.0, 3.0, 3.0, 7.0], np.float32)
    for alternatives, ids in ((1, [6]), (2, [6, 1]), (3, [6, 1, 3]), (4, [6, 1, 3, 2]), (5, [6, 1, 3, 2, 4])):
        assert [token for token, _ in token_logprob(logits, 0, alternatives).top] == ids


OPS = load("reference")


def loaded(backend: str) -> Ops:
    try:
        return load(backend, Options(threads=1))
    except BackendError as error:
        pytest.skip(str(error))


class Recording:
    """The real sampler, which notes what it was asked."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []

    def __call__(self, logits: Logits, draws: Seq[Draw]) -> list[int]:
        self.draws += draws
        return OPS.sample(logits, draws)


def chooser(
    logits: NDArray[np.float32],
    *,
    output: Seq[int] = (),
    first: int = 0,
    drawn: Seq[int | None] | None = None,
    **sampling: object,
) -> tuple[Chooser, Recording]:
    seq = Sequence(make_request("r", [1, 2, 3], **sampling), arrival=0)  # type: ignore[arg-type]
    seq.tokens += output
    recording = Recording()
    ops = replace(OPS, sample=recording)
    return Chooser(seq, OPS.constant(logits), drawn or [None] * len(logits), first, ops), recording


def test_what_was_drawn_for_the_whole_step_is_not_drawn_again() -> None:
    choose, recording = chooser(np.eye(5, dtype=np.float32)[[3, 1, 4]], first=2, drawn=[0, None, 2])
    assert [choose(node, ()) for node in (2, 3, 4)] == [0, 1, 2]
    assert len(recording.draws) == 1
    assert choose.logprobs == []


def test_noise_is_keyed_by_the_position_of_the_token_being_chosen() -> None:
    logits = np.random.default_rng(0).standard_normal((3, VOCAB), np.float32)
    choose, recording = chooser(logits, output=[4, 5], temperature=0.7, seed=99, top_k=30, top_p=0.95, min_p=0.001)
    tokens = [choose(0, ()), choose(1, (8,)), choose(2, (8, 9))]
    assert recording.draws == [Draw(99, position, 0.7, 30, 0.95, 0.001) for position in (5, 6, 7)]
    for row, (token, position) in enumerate(zip(tokens, (5, 6, 7), strict=True)):
        scores = logits[row] / np.float32(0.7) + gumbel(np.arange(VOCAB), position, 99)
        assert token == scores.argmax() or scores.max() - scores[token] < 17.4  # a filter may take the very best
    plain, _ = chooser(logits, output=[4, 5], temperature=0.7, seed=99)
    for row, position in enumerate((5, 6, 7)):
        scores = logits[row] / np.float32(0.7) + gumbel(np.arange(VOCAB), position, 99)
        assert plain(row, (0,) * row) == scores.argmax()


def test_a_top_k_beyond_the_vocabulary_is_all_of_it() -> None:
    logits = np.random.default_rng(1).standard_normal((1, VOCAB), np.float32)
    choose, recording = chooser(logits, temperature=1.0, seed=5, top_k=2**64 - 1)
    plain, _ = chooser(logits, temperature=1.0, seed=5)
    assert choose(0, ()) == plain(0, ())
    assert recording.draws[0].top_k == 2**31 - 1, "kernels count in 32 bits"


def test_penalties_count_the_tokens_of_the_path() -> None:
    logits = np.array([[0.0, 5.0, 4.0, 3.0]] * 3, np.float32)
    choose, _ = chooser(logits, output=[], presence_penalty=2.0)
    assert choose(0, ()) == 1
    assert choose(1, (1,)) == 2  # 1 was chosen on the way: 5 - 2 < 4
    assert choose(2, (1, 2)) in (1, 3)  # 3, 2 and 3: a tie goes to the lower id
    assert choose(2, (1, 2)) == 1
    earlier, _ = chooser(logits, output=[1], presence_penalty=2.0)
    assert earlier(0, ()) == 2


def test_logprobs_are_of_the_processed_distribution_without_temperature() -> None:
    logits = np.array([[0.0, 5.0, 4.0, 3.0]], np.float32)
    choose, _ = chooser(logits, logprobs=2, logit_bias={1: -10.0}, temperature=0.1)
    token = choose(0, ())
    assert choose.logprobs == [token_logprob(np.array([0.0, -5.0, 4.0, 3.0], np.float32), token, 2)]
    assert [t for t, _ in choose.logprobs[0].top] == [2, 3]


def test_greedy_with_logprobs_keeps_the_argmax() -> None:
    choose, _ = chooser(np.array([[0.0, 5.0, 5.0, 3.0]], np.float32), logprobs=0)
    assert choose(0, ()) == 1  # a tie goes to the lower id
    assert [(entry.token, entry.top) for entry in choose.logprobs] == [(1, ())]


@pytest.mark.parametrize("temperature", [1e-3, 1e-6, 1e-12, 1e-39, 1e-46, 5e-324])
def test_a_temperature_near_zero_is_near_greedy(temperature: float) -> None:
    logits = np.array([[1.0, 7.5, 3.0, 8.0, -2.0, 7.9]], np.float32)
    choose, _ = chooser(logits, temperature=temperature)
    assert choose(0, ()) == 3


def test_a_mask_leaves_the_logits_of_what_may_come() -> None:
    logits = np.arange(70, dtype=np.float32)
    logits.flags.writeable = False
    may = {0, 31, 32, 63, 64, 69}
    mask = np.zeros(3, np.uint32)
    for token in may:
        mask[token // 32] |= np.uint32(1 << token % 32)
    after = mask_logits(logits, mask)
    assert after.dtype == np.float32
    assert after.tolist() == [token if token in may else -math.inf for token in range(70)]


@pytest.mark.parametrize("backend", ["reference", "native"])
@pytest.mark.parametrize(
    "fields", [{}, {"temperature": 0.7}, {"temperature": 1.5, "top_k": 9, "top_p": 0.8, "min_p": 0.1}, {"top_k": 1}]
)
def test_what_may_not_come_is_never_drawn(backend: str, fields: dict[str, Any]) -> None:
    """As if the vocabulary had no other tokens, though the likeliest ones are masked."""
    ops = loaded(backend)
    logits = np.linspace(-3, 12, 300, dtype=np.float32)
    mask = np.zeros(10, np.uint32)
    mask[[0, 2]] = 0x00F0_0001, 0x8000_0000
    may = [0, 20, 21, 22, 23, 95]
    for seed in range(30):
        draw = Draw(seed, 4, **{"temperature": 1.0, **fields})
        (token,) = ops.sample(mask_logits(logits, mask)[None], [draw])
        assert token in may
    low = mask_logits(logits, mask)
    low[95] = -50.0
    assert ops.sample(low[None], [Draw(1, 4, 0.0)]) == [23]


def test_alternatives_are_tokens_that_may_come() -> None:
    entry = token_logprob(np.array([-np.inf, 1.0, -np.inf, 2.0], np.float32), 1, 20)
    assert [token for token, _ in entry.top] == [3, 1]
    assert math.isclose(sum(math.exp(value) for _, value in entry.top), 1.0)


def test_a_grammar_masks_each_node_by_the_tokens_of_its_own_path() -> None:
    x, y, z = (small_tokenizer().encode(letter)[0] for letter in "xyz")
    grammar = Grammars(small_tokenizer(), 128).compile('start: "xyz" | "xzz" | "yx"', "x")
    logits = np.zeros((4, 128), np.float32)
    logits[:, z] = 3.0  # the likeliest, wherever it may come
    logits[:, [y, x]] = 2.0, 1.0
    choose, _ = chooser(logits, grammar=grammar, logit_bias={y: -1.5}, logprobs=4)
    assert [choose(0, ()), choose(1, (x,)), choose(2, (x, z)), choose(3, (x, z, z))] == [x, z, z, 0]
    assert [[token for token, _ in entry.top] for entry in choose.logprobs] == [[x, y], [z, y], [z], [0]]
    assert choose.error is None


def test_where_a_grammar_breaks_no_token_is_chosen_and_the_reason_is_kept() -> None:
    grammar = Grammars(small_tokenizer(), 128).compile(TOO_WIDE, "x")
    g, _ = small_tokenizer().encode("go")
    choose, _ = chooser(np.zeros((2, 128), np.float32), grammar=grammar, logprobs=0)
    assert [choose(0, ()), choose(1, (g,))] == [g, None]
    assert choose.error is not None
    assert "too complex" in choose.error
    assert len(choose.logprobs) == 1


@pytest.mark.parametrize("ruled_out", [-np.inf, np.nan])
def test_a_mask_that_leaves_nothing_possible_is_the_grammars_error(ruled_out: float) -> None:
    logits = np.array([1.0, ruled_out, ruled_out, 2.0], np.float32)
    with pytest.raises(GrammarError, match="loosen the form"):
        mask_logits(logits, np.array([0b0110], np.uint32))
    assert mask_logits(logits, np.array([0b1000], np.uint32)).tolist() == [-np.inf, -np.inf, -np.inf, 2.0]
