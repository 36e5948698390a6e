"""Trained drafters over tiny random models, and a proposer that keeps what another one proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backends import guessing_reference
from fakes import RandomCheckpoint

from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.kernels.backend import Options, load
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.spec.cached_model import CachedModel
from paceline.spec.draft_model import DraftModel
from paceline.spec.proposer import Ask, Proposal, Proposer, Verdict

BLOCKS = 640  # more than any tiny engine has


class CountedModel:
    """Counts the rows of its passes."""

    vocabulary = None

    def __init__(self, model: CachedModel) -> None:
        self._model = model
        self.rows = 0
        self.body, self.compile = model.body, model.compile

    def forward(self, batch: Batch, cache: Cache) -> tuple[Any, ...]:
        self.rows += len(batch.ids)
        return self._model.forward(batch, cache)


class _Whole:
    vocabulary = None

    def __init__(self, decoder: Decoder) -> None:
        self.forward, self.body, self.compile = decoder.forward, decoder.body, decoder.compile


def draft_model(
    checkpoint: RandomCheckpoint,
    options: dict[str, Any],
    wrap: Callable[[CachedModel], CachedModel] = lambda model: model,
    token_ms: float = 1e9,
    spine: bool = False,
) -> DraftModel:
    """options: those of `tiny_engine` that its backend takes. token_ms: so much that every pass pays, unless given.
    spine: the reference's passes go on from their own guesses.
    """
    ops = load(
        options.get("backend", "reference"),
        Options(
            threads=options.get("threads"),
            weights=options.get("weights", "stored"),
            kv=options.get("kv_format", "auto"),
        ),
    )
    if spine:
        ops = guessing_reference()
    decoder = Decoder(checkpoint.config, checkpoint.load(), ops, context_length=checkpoint.config.context_length)
    ops.finish()
    cache = ops.allocate(cache_shape(checkpoint.config), BLOCKS)
    return DraftModel(wrap(_Whole(decoder)), cache, ops, token_ms=lambda: token_ms)


class Watched:
    """chains: (text so far, length of its prompt, first choices below it) of each proposal that has any."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self.name = proposer.name
        self.needs_hidden = proposer.needs_hidden
        self.chains: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        proposals = self._proposer.propose(asks)
        for ask, proposal in zip(asks, proposals, strict=True):
            assert len(proposal.tokens) <= ask.max_guesses
            if chain := first_choices(proposal):
                self.chains.append((tuple(ask.tokens), ask.prompt_length, chain))
        return proposals

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self._proposer.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        self._proposer.forget(seq_id)


def first_choices(proposal: Proposal) -> tuple[int, ...]:
    """The first guess, the first below it, and so on."""
    chain: list[int] = []
    at = -1
    while at in proposal.parents:
        at = proposal.parents.index(at)
        chain.append(proposal.tokens[at])
    return tuple(chain)
