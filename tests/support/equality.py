"""Compare replies token by token; a difference is forgiven only at a near-tie, and then it is counted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from fakes import RandomCheckpoint, Replies, Scripted, make_request, run, tiny_engine

from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.engine.request import Request
from paceline.engine.sampling import mask_logits, process_logits
from paceline.kernels import backend
from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.sample.reference import gumbel
from paceline.kernels.tree_attention import Layout
from paceline.spec.proposer import Proposer
from paceline.spec.suffix import Suffix

Record = Callable[[str, object], None]

VOCAB = 97
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "seeded": {"temperature": 0.8},
    "filtered": {"temperature": 1.1, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": 0.3},
    "seeded-penalties-bias": {"temperature": 0.8, "presence_penalty": 0.5, "logit_bias": {3: 4.0, 5: -100.0}},
    "stop-ids": {"stop_ids": frozenset(range(0, VOCAB, 9))},
}
DRAFTERS = ("suffix", "right", "wrong", "random", "merged")

NEAR_TIE = 1e-4  # float32 results of different batch shapes differ by less than this


class Oracle:
    """The model without an engine around it: one pass over all tokens, no cache, no batch."""

    def __init__(self, checkpoint: RandomCheckpoint) -> None:
        c = checkpoint.config
        ops = backend.load()
        self._decoder = Decoder(c, checkpoint.load(), ops, context_length=c.context_length)
        self._cache = ops.allocate(cache_shape(c), -(-c.context_length // BLOCK_SIZE))

    def logits(self, tokens: Sequence[int]) -> torch.Tensor:
        """[R, V] after each of the tokens."""
        rows = np.arange(len(tokens))
        layout = Layout(
            row_starts=np.array([0, len(tokens)], np.int32),
            context_lens=np.zeros(1, np.int32),
            block_tables=np.arange(-(-len(tokens) // BLOCK_SIZE), dtype=np.int32)[None],
            causal=np.ones(1, np.bool_),
            ancestors=np.zeros(len(tokens), np.int64),
        )
        logits: torch.Tensor = self._decoder.forward(Batch(np.array(tokens), rows, rows, rows, layout), self._cache)[0]
        return logits

    def scores(self, request: Request, output: Sequence[int]) -> torch.Tensor:
        """[V] what the argmax is taken over for the token after `output`, filters aside."""
        params = request.sampling
        logits = self.logits([*request.prompt, *output])[-1]
        if params.rewrites_logits:
            logits = torch.from_numpy(process_logits(logits.numpy(), params, request.prompt, output))
        if params.grammar is not None:
            matcher = params.grammar.matcher()
            matcher.advance(output)
            logits = torch.from_numpy(mask_logits(logits.numpy(), matcher.mask()))
        if params.temperature == 0.0:
            return logits
        ids = torch.arange(logits.numel()).numpy()
        noise = gumbel(ids, len(request.prompt) + len(output), params.seed)
        return logits / params.temperature + torch.from_numpy(noise)

    def is_near_tie(self, request: Request, output: Sequence[int], one: int, other: int) -> bool:
        scores = self.scores(request, output)
        return abs(float(scores[one] - scores[other])) < NEAR_TIE


def requests_for(sampling: dict[str, object], count: int = 6, mode: str = "auto") -> list[Request]:
    """Prompts that repeat themselves, so that suffixes match, of lengths around block borders; seeds differ."""
    pick = random.Random(11)
    requests = []
    for i in range(count):
        phrase = [pick.randrange(VOCAB) for _ in range(pick.randint(3, 9))]
        prompt = (phrase * 12)[: pick.choice((1, 15, 16, 17, 33, 70))]
        requests.append(make_request(f"r{i}", prompt, mode=mode, max_tokens=30 + i, seed=i * 77, **sampling))
    return requests


def plain_replies(checkpoint: RandomCheckpoint, requests: Sequence[Request], **options: Any) -> Replies:
    """Alone, without guesses, whole prompts at once."""
    return run(tiny_engine(checkpoint, step_budget=4096, **options), requests, together=False)


def proposers(name: str, requests: Sequence[Request], plain: Replies) -> list[Proposer]:
    """The drafter of that name; merged: several, one of which costs time."""
    truth = {request.prompt: plain.tokens(request.id) for request in requests}
    if name == "merged":
        return [Scripted("random", truth, VOCAB, ms=0.05), Scripted("wrong", truth, VOCAB), Suffix()]
    return [Suffix() if name == "suffix" else Scripted(name, truth, VOCAB)]


def assert_equal(
    oracle: Oracle | None,
    requests: Sequence[Request],
    plain: Replies,
    other: Replies,
    record: Record,
) -> None:
    """Every reply of `other` is the reply of `plain`; figures go to the report of the run.

    oracle: judges what is a near-tie; None forgives nothing.
    """
    compared = ties = 0
    for request in requests:
        expected, got = plain.tokens(request.id), other.tokens(request.id)
        assert expected, "an empty reply compares nothing"
        first = next((i for i, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), None)
        if first is None:
            assert got == expected
            assert other.finish(request.id) == plain.finish(request.id)
            compared += len(expected)
        else:
            forgiven = oracle is not None and oracle.is_near_tie(request, expected[:first], expected[first], got[first])
            assert forgiven, f"{request.id} differs at {first}: {got[first]} in place of {expected[first]}"
            ties += 1
            compared += first
    record("compared_replies", len(requests))
    record("compared_tokens", compared)
    record("near_ties", ties)
