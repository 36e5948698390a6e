"""Promise 1 to the byte: with the native kernels no near-tie is forgiven, and logits are equal bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from equality import DRAFTERS, SAMPLINGS, VOCAB, Record, assert_equal, plain_replies, proposers, requests_for
from fakes import FLAT, RandomCheckpoint, Scripted, make_request, run, tiny_engine
from grammars import Formats
from jobs import Job, branching, chain, slots_of
from native_ops import batch_of
from numpy.typing import NDArray

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import Checkpoint, open_checkpoint
from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.kernels import backend
from paceline.kernels.backend import ACTIVATIONS, BackendError, Options
from paceline.kernels.batch import Batch
from paceline.kernels.native import isa
from paceline.kernels.paging import BLOCK_SIZE
from paceline.server.chat_template import ChatTemplate
from paceline.server.tokenizer import Tokenizer
from paceline.spec.cost import StepCost
from paceline.spec.forced import Forced
from paceline.spec.suffix import Suffix

NATIVE: dict[str, Any] = {"backend": "native", "threads": 1, "weights": "q4", "kv_format": "int8"}
FORMATS = [
    ("stored", "mixed", "f16"),
    ("q8", "int16", "int8"),
    ("q8", "mixed", "f16"),
    ("bf16", "mixed", "f16"),
    ("q4_128", "int8", "f16"),
]
OUTLIER = 12.0  # of one channel: it stays a float in about two rows of three


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    try:
        backend.load("native", Options(threads=1))
    except BackendError as error:
        pytest.skip(str(error))


@pytest.fixture(params=isa.PREFERENCE)
def each_isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(isa.VARIABLE, request.param)
    try:
        isa.load()
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, head_dim=16, outlier=OUTLIER)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_any_drafter_gives_the_plain_reply(
    checkpoint: RandomCheckpoint, name: str, sampling: str, record_property: Record
) -> None:
    requests = requests_for(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, requests, **NATIVE)
    engine = tiny_engine(checkpoint, proposers(name, requests, plain), **NATIVE)
    speculative = run(engine, requests, together=False)
    assert_equal(None, requests, plain, speculative, record_property)
    deltas = [delta for reply in speculative.deltas.values() for delta in reply]
    if name != "suffix":
        assert sum(delta.drafted for delta in deltas) > 0
        assert (sum(delta.accepted for delta in deltas) > 0) == (name != "wrong")


@pytest.mark.parametrize("sampling", ["greedy", "seeded-penalties-bias"])
@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_batch_mates_change_nothing(
    checkpoint: RandomCheckpoint, name: str, sampling: str, record_property: Record
) -> None:
    requests = requests_for(SAMPLINGS[sampling], count=8)
    plain = plain_replies(checkpoint, requests, **NATIVE)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    assert_equal(None, requests, plain, run(tiny_engine(checkpoint, guessing, **NATIVE), requests), record_property)


@pytest.mark.parametrize("sampling", ["greedy", "filtered"])
@pytest.mark.parametrize("name", ["random", "merged", "grammar"])
def test_replies_that_follow_a_grammar_are_the_plain_ones(name: str, sampling: str, record_property: Record) -> None:
    checkpoint = RandomCheckpoint(130, head_dim=16, outlier=OUTLIER)
    requests = Formats(130).requests(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, requests, **NATIVE)
    guessing = [Forced()] if name == "grammar" else proposers(name, requests, plain)
    assert_equal(None, requests, plain, run(tiny_engine(checkpoint, guessing, **NATIVE), requests), record_property)


@pytest.mark.parametrize(("weights", "activations", "kv"), FORMATS)
@pytest.mark.parametrize("threads", [1, 2])
def test_formats_and_threads_change_nothing_of_it(
    checkpoint: RandomCheckpoint, weights: str, activations: str, kv: str, threads: int, record_property: Record
) -> None:
    """Plain on one thread, alone; guessed at on one and on two, together."""
    options = NATIVE | {"weights": weights, "activations": activations, "kv_format": kv}
    requests = requests_for({"temperature": 0.8}, count=5)
    plain = plain_replies(checkpoint, requests, **options)
    engine = tiny_engine(checkpoint, proposers("random", requests, plain), **options | {"threads": threads})
    assert_equal(None, requests, plain, run(engine, requests), record_property)


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize("name", ["suffix", "merged"])
def test_on_every_instruction_set(checkpoint: RandomCheckpoint, name: str, record_property: Record) -> None:
    requests = requests_for({}, count=5)
    plain = plain_replies(checkpoint, requests, **NATIVE)
    engine = tiny_engine(checkpoint, proposers(name, requests, plain), **NATIVE)
    assert_equal(None, requests, plain, run(engine, requests), record_property)


@pytest.mark.parametrize("budget", [1, 2, 5, 16, 17, 64])
@pytest.mark.parametrize("name", ["none", "random"])
def test_chunk_size_changes_nothing(
    checkpoint: RandomCheckpoint, name: str, budget: int, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8}, count=4)
    plain = plain_replies(checkpoint, requests, **NATIVE)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, step_budget=budget, max_batch=min(4, budget), **NATIVE)
    assert_equal(None, requests, plain, run(engine, requests), record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_preemption_changes_nothing(checkpoint: RandomCheckpoint, name: str, record_property: Record) -> None:
    requests = requests_for({"temperature": 0.8}, count=8)
    plain = plain_replies(checkpoint, requests, **NATIVE)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, blocks=8, max_nodes=6, **NATIVE)
    replies = run(engine, requests)
    assert engine.stats().preemptions > 0
    assert_equal(None, requests, plain, replies, record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_prefix_hits_change_nothing(checkpoint: RandomCheckpoint, name: str, record_property: Record) -> None:
    requests = requests_for({"temperature": 0.8})
    plain = plain_replies(checkpoint, requests, **NATIVE)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, **NATIVE)
    run(engine, requests)
    again = run(engine, requests)
    assert sum(again.deltas[request.id][0].cached_tokens for request in requests) > 0
    assert_equal(None, requests, plain, again, record_property)


def test_logprobs_are_the_very_numbers_of_plain_decoding(checkpoint: RandomCheckpoint) -> None:
    requests = requests_for({"temperature": 0.8, "logprobs": 3, "frequency_penalty": 0.5})
    plain = plain_replies(checkpoint, requests, **NATIVE)
    speculative = run(tiny_engine(checkpoint, proposers("random", requests, plain), **NATIVE), requests)
    for request in requests:
        expected, got = (
            [entry for delta in replies.deltas[request.id] for entry in delta.logprobs or ()]
            for replies in (plain, speculative)
        )
        assert len(expected) == len(plain.tokens(request.id))
        assert got == expected


# --- Bits of the logits ---


class Model:
    """A checkpoint's decoder on the native kernels, with a cache and no engine."""

    def __init__(self, checkpoint: Checkpoint, blocks: int, **options: Any) -> None:
        """options: of the backend."""
        self.config = checkpoint.config
        self._ops = backend.load("native", Options(**options))
        self._decoder = Decoder(self.config, checkpoint.load(), self._ops, context_length=blocks * BLOCK_SIZE)
        self._ops.finish()
        self._cache = self._ops.allocate(cache_shape(self.config), blocks)

    def logits(
        self, jobs: list[Job], owned: list[list[int]], ids: list[int], sampled: list[int] | None = None
    ) -> NDArray[np.float32]:
        rows = batch_of(jobs, owned, sampled)
        batch = Batch(np.array(ids), rows.positions, rows.slots, rows.sampled, rows.layout)
        logits: NDArray[np.float32] = self._decoder.forward(batch, self._cache)[0]
        return logits.copy()

    def move(self, table: list[int], source: list[int], target: list[int]) -> None:
        self._ops.move_kv(self._cache, np.array(slots_of(table, source)), np.array(slots_of(table, target)))


def check_bits(models: list[Model], length: int, contexts: list[int], seed: int, nodes: int, tail: int) -> None:
    """One text of `length` random tokens, computed in every way there is.

    models: the same one with other numbers of threads. tail: how many of the last tokens are decoded one by one.
    """
    rng = torch.Generator().manual_seed(seed)
    vocab = models[0].config.vocab_size
    tokens: list[int] = torch.randint(vocab, (length,), generator=rng).tolist()
    blocks = -(-length // BLOCK_SIZE) + 6
    ids = torch.randperm(4 * blocks, generator=rng).tolist()
    table, other, third, mate = (ids[i * blocks : (i + 1) * blocks] for i in range(4))
    whole = models[0].logits([chain(0, length)], [table], tokens)
    assert np.isfinite(whole).all()

    for model in models:
        # In chunks, beside a sequence that is none of its business; the last ones alone.
        start = 0
        while start < length:
            count = min(length - start, int(torch.randint(1, 90, (), generator=rng)))
            count = 1 if start >= length - tail else min(count, length - tail - start)
            jobs, owned, fed = [chain(start, count)], [other], tokens[start : start + count]
            first = 0
            if count > 1:
                size = int(torch.randint(1, 9, (), generator=rng))
                jobs, owned, first = [branching(0, size, rng), *jobs], [mate, *owned], size
                fed = torch.randint(vocab, (size,), generator=rng).tolist() + fed
            got = model.logits(jobs, owned, fed)[first:]
            assert np.array_equal(got, whole[start : start + count]), (start, count)
            start += count

        # As a tree: every node against the same tokens computed as one chain, in other blocks.
        for context in contexts:
            model.logits([chain(0, context)], [table], tokens[:context], [context - 1])
            tree = branching(context, nodes, rng)
            guesses = torch.randint(vocab, (nodes,), generator=rng).tolist()
            alone = model.logits([tree], [table], guesses)
            beside = model.logits([chain(3, 1), tree, chain(0, 20)], [mate, table, third], [5, *guesses, *tokens[:20]])
            assert np.array_equal(beside[1 : 1 + nodes], alone)
            leaves = set(range(nodes)) - set(tree.parents or ())
            lines = sorted((tree.line(leaf) for leaf in leaves), key=len, reverse=True)
            for line in lines[:4]:
                text = tokens[:context] + [guesses[node] for node in line]
                plain = model.logits([chain(0, len(text))], [third], text, list(range(context, len(text))))
                assert np.array_equal(alone[line], plain), (context, line)
            # The longest line is accepted: moved into place, it serves the next token as if it had been decoded.
            longest = lines[0]
            line_slots = range(context, context + len(longest))
            model.move(table, [context + node for node in longest], list(line_slots))
            after = context + len(longest)
            text = tokens[:context] + [guesses[node] for node in longest]
            model.logits([chain(0, after)], [third], text, [0])
            following = [model.logits([chain(after, 1)], [where], [tokens[0]]) for where in (table, third)]
            assert np.array_equal(*following), context


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize(
    ("weights", "activations", "kv"),
    [("q4", "mixed", "int8"), ("q8", "int16", "f16"), ("q4_128", "int8", "f16"), ("stored", "mixed", "f16")],
)
def test_logits_have_the_same_bits_however_rows_are_cut(weights: str, activations: str, kv: str) -> None:
    checkpoint = RandomCheckpoint(VOCAB, head_dim=16, outlier=OUTLIER)
    options = {"weights": weights, "activations": activations, "kv": kv}
    models = [Model(checkpoint, 130, threads=threads, **options) for threads in (1, 2, 3)]
    check_bits(models, length=320, contexts=[1, 250, 257], seed=4, nodes=20, tail=24)


def test_activations_differ_on_this_checkpoint(checkpoint: RandomCheckpoint) -> None:
    """Else the tests above would compare one of them with itself."""
    first, *others = (
        Model(checkpoint, 2, threads=1, weights="q8", activations=activations).logits(
            [chain(0, 20)], [[0, 1]], list(range(20))
        )
        for activations in ACTIVATIONS
    )
    assert all((first != other).any() for other in others)


# --- The default model ---

PROMPTS = (
    "Say hello.",
    "Write the numbers from one to forty in words, separated by commas, and then write them all again.",
    "List ten capitals of Europe as a JSON array, then the same array sorted backwards.",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) +",
    "Explain, in one paragraph, why the sky is blue, and repeat the explanation for a child.",
)


@pytest.fixture(scope="module")
def model(default_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return open_checkpoint(default_model, tmp_path_factory.mktemp("cache"))


def test_the_default_model_knows_the_capital_of_france(model: Any) -> None:
    """One 8-bit term for all activations is enough to lose it."""
    tokenizer = Tokenizer.from_assets(model.text)
    template = ChatTemplate(model.text.chat_template, model.text.bos_token, model.text.eos_token, tokenizer)
    prompt = template.encode([{"role": "user", "content": "What is the capital of France?"}])
    request = make_request("r", prompt, max_tokens=24, stop_ids=frozenset(tokenizer.eos_ids))
    engine = build_engine(model, EngineConfig(device="cpu", backend="native"), cost=StepCost(FLAT))
    assert "Paris" in tokenizer.decode(run(engine, [request]).tokens("r"))


@pytest.mark.proof
@pytest.mark.parametrize("sampling", ["greedy", "seeded", "penalties"])
def test_the_default_model_is_spoken_for_to_the_byte(model: Any, sampling: str, record_property: Record) -> None:
    tokenizer = Tokenizer.from_assets(model.text)
    requests = [
        make_request(f"r{i}", tokenizer.encode(text * (1 + i % 2)), max_tokens=64, seed=i, **SAMPLINGS[sampling])
        for i, text in enumerate(PROMPTS)
    ]
    options = {"backend": "native", "context_length": 512}
    plain = run(tiny_engine(model, threads=1, **options), requests, together=False)
    truth = {request.prompt: plain.tokens(request.id) for request in requests}
    for proposer in (Suffix(), Scripted("random", truth, model.config.vocab_size)):
        speculative = run(tiny_engine(model, [proposer], step_budget=48, threads=2, **options), requests)
        assert_equal(None, requests, plain, speculative, record_property)
        accepted = sum(delta.accepted for reply in speculative.deltas.values() for delta in reply)
        # Penalties leave nothing that a lookup could see again.
        assert accepted > 0 or (sampling == "penalties" and isinstance(proposer, Suffix))


@pytest.mark.proof
@pytest.mark.parametrize(("activations", "kv"), [("mixed", "f16"), ("int8", "int8"), ("int16", "f16")])
def test_the_default_model_has_the_same_bits_however_rows_are_cut(model: Checkpoint, activations: str, kv: str) -> None:
    models = [Model(model, 120, threads=threads, activations=activations, kv=kv) for threads in (1, 2)]
    check_bits(models, length=280, contexts=[20, 260], seed=9, nodes=16, tail=24)
