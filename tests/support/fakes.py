"""Small real models and drafters of every temper, for tests of the engine."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.model.assets import TextAssets
from paceline.engine.model.config import ModelConfig, RopeConfig
from paceline.engine.model.decoder import cache_shape
from paceline.engine.model.weights import ModelWeights, expected_tensors, load_weights
from paceline.engine.request import Delta, Request, SamplingParams, Speculation
from paceline.kernels.backend import Options, load
from paceline.spec.cost import StepCost, Work
from paceline.spec.guard import Guard
from paceline.spec.proposer import Ask, Proposal, Proposer, Verdict
from paceline.spec.tree import MAX_NODES

FLAT = {1: 1.0, 100_000: 1.0}  # a machine on which rows cost nothing: every guess is worth verifying


class RandomCheckpoint:
    """A tiny decoder with seeded random weights, made in memory. Implements `Checkpoint`."""

    name = "random"
    fingerprint = "random"
    text = TextAssets(tokenizer_json=None, gguf=None, chat_template=None, bos_token=None, eos_token=None, eos_ids=())

    def __init__(
        self,
        vocab_size: int = 97,
        context_length: int = 512,
        seed: int = 0,
        sharpness: float = 1.0,
        head_dim: int = 8,
        outlier: float = 1.0,
    ) -> None:
        self.config = ModelConfig(
            family="llama",
            vocab_size=vocab_size,
            hidden_size=48,
            intermediate_size=80,
            num_layers=2,
            num_heads=6,
            num_kv_heads=2,
            head_dim=head_dim,
            rms_norm_eps=1e-5,
            context_length=context_length,
            rope=RopeConfig(theta=10000.0),
            tie_embeddings=False,
            qkv_bias=False,
            qk_norm=False,
        )
        self._seed = seed
        self._sharpness = sharpness
        self._outlier = outlier

    def load(self) -> ModelWeights:
        return load_weights(self.config, self)

    def close(self) -> None:
        pass

    def _tensor(self, name: str) -> torch.Tensor:
        """A matrix is drawn from a generator seeded by the checkpoint's seed and its name; norms are ones but for one
        channel, which is `outlier`.
        """
        shape = expected_tensors(self.config)[name]
        if len(shape) == 1:
            vector = torch.zeros(shape) if name.endswith("bias") else torch.ones(shape)
            vector[5] *= self._outlier
            return vector
        generator = torch.Generator().manual_seed(zlib.crc32(f"{self._seed} {name}".encode()))
        scale = {"model.embed_tokens.weight": 4.0, "lm_head.weight": 2.0 * self._sharpness}.get(name, 2.0)
        return torch.randn(shape, generator=generator) * scale / shape[1] ** 0.5

    def read(self, name: str, first: int, out: NDArray[np.float32]) -> None:
        out[...] = self._tensor(name).numpy()[first : first + len(out)].reshape(out.shape)

    def kind(self, name: str) -> str:
        return "F32"

    def raw(self, name: str) -> NDArray[np.uint8]:
        return self._tensor(name).view(torch.uint8).numpy()


class Scripted:
    """A drafter that knows how each prompt goes on, and does with that what its `temper` says.

    right: proposes the true continuation as one chain. wrong: a tree without a single true token. random: trees of up
    to 64 nodes in random order of growth, true and false guesses mixed, so that accepted paths lie off the line.
    ms: what it says it costs.
    """

    needs_hidden = False

    def __init__(
        self, temper: str, continuations: Mapping[tuple[int, ...], Sequence[int]], vocab_size: int, ms: float = 0.0
    ) -> None:
        self.name = temper
        self._ms = ms
        self._grow = {"right": self._right, "wrong": self._wrong, "random": self._random}[temper]
        self._continuations = continuations
        self._vocab_size = vocab_size
        self._random_state = random.Random(7)

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return self._ms

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return [self._grow(ask) for ask in asks]

    def _truth(self, ask: Ask) -> list[int]:
        continuation = self._continuations[tuple(ask.tokens[: ask.prompt_length])]
        return list(continuation[len(ask.tokens) - ask.prompt_length :])

    def _right(self, ask: Ask) -> Proposal:
        guesses = self._truth(ask)[: ask.max_guesses]
        n = len(guesses)
        return Proposal(self.name, tuple(guesses), tuple(range(-1, n - 1)), (0.9,) * n)

    def _wrong(self, ask: Ask) -> Proposal:
        truth = self._truth(ask)
        n = ask.max_guesses
        guesses = [((truth[i // 2] if i // 2 < len(truth) else 0) + 1 + i % 3) % self._vocab_size for i in range(n)]
        return Proposal(self.name, tuple(guesses), tuple((i - 1) // 2 if i else -1 for i in range(n)), (0.5,) * n)

    def _random(self, ask: Ask) -> Proposal:
        pick, truth = self._random_state, self._truth(ask)
        count = pick.randint(0, min(ask.max_guesses, MAX_NODES - 1))
        tokens: list[int] = []
        parents: list[int] = []
        on_line: dict[int, int] = {-1: 0}  # guesses on the true line -> how many true tokens lead there
        for guess in range(count):
            parent = pick.choice([*on_line, pick.randint(-1, guess - 1)])
            token = pick.randrange(self._vocab_size)
            depth = on_line.get(parent)
            if depth is not None and depth < len(truth) and pick.random() < 0.6:
                token = truth[depth]
                on_line[guess] = depth + 1
            tokens.append(token)
            parents.append(parent)
        return Proposal(self.name, tuple(tokens), tuple(parents), tuple(pick.uniform(0.05, 0.95) for _ in tokens))

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        pass

    def forget(self, seq_id: str) -> None:
        pass


class AlwaysDrafting(Guard):
    """How fast the machine of a test is must not decide what it tests."""

    def drafts(self, sequences: int, measured: bool) -> bool:
        return True


class FixedCost(StepCost):
    """Learns nothing from the machine: its pace would come to decide which drafters pay."""

    def observe(self, work: Work, ms: float) -> None:
        pass


def tiny_engine(
    checkpoint: RandomCheckpoint,
    proposers: Sequence[Proposer] | None = (),
    *,
    blocks: int | None = None,
    cost: Mapping[int, float] = FLAT,
    guard: Guard | None = None,
    **options: Any,
) -> Engine:
    """An engine over a tiny model, on the reference unless `backend` is given.

    proposers: its drafters; None: those its config names.
    blocks: size of the cache, the spare ones for guesses not counted. guard: one that always drafts unless given.
    options: of the engine's config.
    """
    c = checkpoint.config
    config = EngineConfig(**{"device": "cpu", "backend": "reference", "max_nodes": MAX_NODES, **options})
    if blocks is not None:
        ops = load(config.backend, Options(threads=1, kv=config.kv_format))
        config = replace(config, kv_memory=blocks * ops.block_bytes(cache_shape(c)))
    return build_engine(checkpoint, config, proposers=proposers, cost=StepCost(cost), guard=guard or AlwaysDrafting())


class Replies:
    """Collects deltas by request."""

    def __init__(self, deltas: Mapping[str, list[Delta]] | None = None) -> None:
        self.deltas: dict[str, list[Delta]] = dict(deltas or {})

    def __call__(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            self.deltas.setdefault(delta.request_id, []).append(delta)

    def tokens(self, request_id: str) -> list[int]:
        return [token for delta in self.deltas.get(request_id, []) for token in delta.tokens]

    def finish(self, request_id: str) -> str | None:
        return self.deltas[request_id][-1].finish


def run(engine: Engine, requests: Sequence[Request], *, together: bool = True) -> Replies:
    """Run requests to their end, all at once or one after the other; the cache is checked after every step."""
    replies = Replies()
    for batch in [list(requests)] if together else [[request] for request in requests]:
        for request in batch:
            engine.submit(request)
        while engine.has_work:
            engine.step(replies)
            engine.check()
    return replies


def make_request(
    request_id: str,
    prompt: Sequence[int],
    *,
    mode: str = "auto",
    max_tokens: int = 40,
    seed: int = 1,
    **sampling: object,
) -> Request:
    params = SamplingParams(max_tokens=max_tokens, seed=seed, **{"temperature": 0.0, **sampling})  # type: ignore[arg-type]
    return Request(id=request_id, prompt=tuple(prompt), sampling=params, speculation=Speculation(mode=mode))


def finish(engine: Engine, *requests: Request) -> Replies:
    return run(engine, requests)


def assert_idle(engine: Engine) -> None:
    engine.check()
    stats = engine.stats()
    assert (stats.running, stats.waiting, stats.blocks_held, engine.has_work) == (0, 0, 0, False)
