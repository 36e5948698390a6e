"""`paceline train`: from a model's name and options to a drafter's folder."""

from __future__ import annotations

import datetime
import importlib.metadata
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from rich.console import Console
from rich.table import Table

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.drafter_file import DrafterFile
from paceline.engine.errors import ConfigError, ModelError
from paceline.engine.model.checkpoint import Checkpoint, open_checkpoint
from paceline.engine.model.weights import model_fingerprint
from paceline.engine.teacher import DecoderTeacher, target_of, weights_checksum
from paceline.engine.writer import EngineWriter
from paceline.spec.eagle import ARCHITECTURE as EAGLE
from paceline.spec.heads import HYDRA, MEDUSA
from paceline.spec.recurrent import ARCHITECTURE as RECURRENT
from paceline.spec.training.dialogues import OPENINGS, Recipe
from paceline.spec.training.run import DRAFT_LAYERS, Kind, Plan, train
from paceline.spec.training.target import Target, TrainingError

from .chat_template import ChatTemplate
from .stage_bars import progress_bars
from .terminal import notices, output
from .tokenizer import Tokenizer
from .train_text import frame_of, logged_texts, prompt_tokens, text_files

_KINDS: Mapping[str, Kind] = {EAGLE: "eagle", RECURRENT: "recurrent", MEDUSA: "medusa", HYDRA: "hydra"}
_AT_ONCE = 40  # conversations: on two cores a step of 40 rows costs six of one row


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    kind: Kind
    model: str
    out: Path
    tokens: int
    vocab: int | None
    layers: int | None
    epochs: float
    minutes: float | None
    seed: int
    threads: int | None
    prompts: Path | None
    text: Path | None
    start: Path | None = None

    def settings(self, trained_for: int, weights: int) -> dict[str, object]:
        """What must be the same when a run goes on. weights: their checksum."""
        return {
            "kind": self.kind,
            "model": trained_for,
            "checksum of its weights": weights,
            "--tokens": self.tokens,
            "--vocab": self.vocab,
            "--layers": self.layers,
            "--epochs": self.epochs,
            "--minutes": self.minutes,
            "--seed": self.seed,
            "--prompts": _checksum(self.prompts),
            "--text": _checksum(self.text),
            "--start": _checksum(self.start),
        }

    def command(self) -> str:
        given = {
            "out": self.out,
            "tokens": self.tokens,
            "vocab": self.vocab,
            "layers": self.layers,
            "epochs": self.epochs,
            "minutes": self.minutes,
            "seed": self.seed,
            "threads": self.threads,
            "prompts": self.prompts,
            "text": self.text,
            "start": self.start,
        }
        flags = [part for name, value in given.items() if value is not None for part in (f"--{name}", str(value))]
        return shlex.join(["paceline", "train", self.kind, self.model, *flags])


class Subject:
    """A checkpoint with its text side, and the passes over it that training asks for."""

    def __init__(self, path: Path, cache: Path, threads: int | None) -> None:
        self.checkpoint: Checkpoint = open_checkpoint(path, cache)
        assets = self.checkpoint.text
        self.tokenizer = Tokenizer.from_assets(assets)
        self.template = ChatTemplate(assets.chat_template, assets.bos_token, assets.eos_token, self.tokenizer)
        self.frame = frame_of(self.template, self.tokenizer)
        context = self.checkpoint.config.context_length
        self.recipe = replace(Recipe(), length=min(Recipe().length, context - 1))
        self.cache = cache
        self._config = EngineConfig(
            max_batch=_AT_ONCE, context_length=min(2 * Recipe().length, context), threads=threads, speculator="none"
        )
        if threads is not None:
            import torch

            torch.set_num_threads(threads)

    @property
    def openings(self) -> list[tuple[int, ...]]:
        return [tuple(self.tokenizer.encode(opening)) for opening in OPENINGS]

    def target(self) -> Target:
        return target_of(self.checkpoint)

    def writer(self) -> EngineWriter:
        engine = build_engine(self.checkpoint, self._config, cache=self.cache)
        return EngineWriter(engine, frozenset(self.tokenizer.eos_ids), _AT_ONCE)

    def teacher(self, taps: Sequence[int]) -> DecoderTeacher:
        length = self._config.context_length or self.recipe.length  # of texts that were held, too
        return DecoderTeacher(self.checkpoint, self._config, taps, length, self.cache)


def drafter_for(fingerprint: int, folder: Path) -> DrafterFile:
    """Raises ModelError for one that says it was trained for another model than that of this fingerprint."""
    file = DrafterFile(folder)
    if file.config.get("trained_for", fingerprint) != fingerprint:
        raise ModelError(f"The drafter {folder} was trained for another model; name the one it was made for.")
    return file


def _start(options: TrainOptions, fingerprint: int) -> DrafterFile | None:
    """Raises ModelError for a drafter of another kind."""
    if options.start is None:
        return None
    file = drafter_for(fingerprint, options.start)
    kinds = {_KINDS.get(name, name) for name in file.architectures}
    if kinds and options.kind not in kinds:
        raise ModelError(
            f"The drafter {options.start} is of the kind {', '.join(sorted(kinds))[:60]}; --start takes one of the "
            f"kind {options.kind} here."
        )
    return file


def run_training(options: TrainOptions, path: Path, cache: Path) -> None:
    """Raises ConfigError or ModelError."""
    model = Subject(path, cache, options.threads)
    config, fingerprint = model.checkpoint.config, model_fingerprint(model.checkpoint.load())
    texts = []
    if options.text is not None:
        texts = logged_texts(options.text, model.template, model.tokenizer, model.frame, model.recipe.length)
    prompts = []
    if options.prompts is not None:
        prompts = [given for given, _ in prompt_tokens(options.prompts, model.template, model.tokenizer)]
    plan = Plan(
        kind=options.kind,
        tokens=options.tokens,
        vocab=options.vocab,
        layers=options.layers or DRAFT_LAYERS,
        companions=text_files(model.checkpoint.text) if options.kind == "draft" else {},
        epochs=options.epochs,
        minutes=options.minutes or None,
        seed=options.seed,
        frame=model.frame,
        openings=model.openings,
        recipe=model.recipe,
        prompts=prompts,
        texts=texts,
        start=_start(options, fingerprint),
    )
    with _goes_on(), expected_errors(), progress_bars() as progress:
        report = train(
            plan,
            options.out,
            options.settings(fingerprint, weights_checksum(model.checkpoint)),
            {**_about(), "model": options.model, "seed": options.seed, "command": options.command()},
            target=model.target,
            writer=model.writer,
            teacher=model.teacher,
            vocab_size=config.vocab_size,
            layers=config.num_layers,
            progress=progress,
        )
    if "prompts" in report:
        answered, asked = report["answered_prompts"], report["prompts"]
        why = "." if answered == asked else "; the others are too long, got no answer, or go beyond --tokens."
        output().print(f"{answered} of {asked} prompts were answered{why}")
    show(output(), report)
    output().print(
        f"The drafter lies in {options.out}: paceline serve {options.model} --speculator {options.out}. "
        f"What it was made from is in {options.out / str(report['work'])} and can be deleted.",
        markup=False,
    )


@contextmanager
def expected_errors() -> Iterator[None]:
    try:
        yield
    except TrainingError as error:
        raise ConfigError(str(error)) from error


@contextmanager
def _goes_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        notices().print("Stopped; the same command goes on from here.")
        raise


def show(console: Console, report: Mapping[str, Any]) -> None:
    figures = report["figures"]
    ranks = figures["by_depth_and_rank"]
    table = Table(title=f"How often a guess is right, {figures['places']} places of held-out text")
    table.add_column("depth")
    for rank in range(len(ranks[0])):
        table.add_column(f"rank {rank + 1}", justify="right")
    for depth, row in enumerate(ranks, 1):
        table.add_row(str(depth), *(f"{100 * share:.1f} %" for share in row))
    console.print(table)
    trees = ", ".join(f"{share:.2f} with {nodes} nodes" for nodes, share in figures["trees"].items())
    console.print(f"Expected tokens per step: {figures['chain']:.2f} with a chain, {trees}.")


def _about() -> dict[str, object]:
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {name: importlib.metadata.version(name) for name in ("paceline", "torch", "numpy")},
    }


def _checksum(path: Path | None) -> int | None:
    """Of a file, or of all files of a folder."""
    if path is None:
        return None
    value = 0
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.is_file():
            value = crc32(file.read_bytes(), value)
    return value
