"""`paceline train eval`: what a trained drafter is worth on the answers to somebody's prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paceline.engine.draft_checkpoint import open_draft
from paceline.engine.eagle_file import read_eagle
from paceline.engine.errors import ConfigError, ModelError
from paceline.engine.model.config import FAMILIES, RopeConfig
from paceline.engine.recurrent_file import read_recurrent
from paceline.engine.teacher import target_of
from paceline.spec.eagle import ARCHITECTURE as EAGLE
from paceline.spec.heads import HYDRA, MEDUSA
from paceline.spec.recurrent import ARCHITECTURE as RECURRENT
from paceline.spec.training.corpus import write_answers
from paceline.spec.training.dialogues import text_seed, write
from paceline.spec.training.export import load_weights
from paceline.spec.training.run import EXAM_DEPTH, Kind, make_student, measure, taps_of
from paceline.spec.training.student import Student
from paceline.spec.training.target import Target

from .stage_bars import progress_bars
from .terminal import output
from .train import Subject, drafter_for, expected_errors, show
from .train_text import prompt_tokens


@dataclass(frozen=True, slots=True)
class _Drafter:
    """vocabulary: [N] ids. depth: guesses in a row. target: with the drafter's own embeddings and head if any."""

    student: Student
    taps: tuple[int, ...]
    vocabulary: NDArray[np.int64]
    depth: int
    target: Target


def run_eval(drafter: Path, path: Path, cache: Path, prompts: Path, threads: int | None, seed: int) -> None:
    """Have the model answer the prompts, and see how much of that a drafter guesses. Raises ConfigError, ModelError."""
    subject = Subject(path, cache, threads)
    loaded = _load(drafter, subject)
    asked = prompt_tokens(prompts, subject.template, subject.tokenizer)
    with expected_errors(), progress_bars() as progress:
        texts = write_answers(
            [
                write(subject.frame, subject.recipe, ((),), text_seed(seed, index), given, turns, more=False)
                for index, (given, turns) in enumerate(asked)
            ],
            subject.writer(),
            lambda done, of: progress.report("writing", done / of),
        )
        if not texts:
            raise ConfigError(f"Nothing came of the prompts in {prompts}: they are too long, or not answered.")
        figures = measure(
            loaded.student,
            loaded.target,
            loaded.vocabulary,
            texts,
            subject.teacher(loaded.taps),
            loaded.depth,
            lambda done, of: progress.report("reading", done / of),
        )
    output().print(f"{len(texts)} of {len(asked)} prompts were answered.")
    show(output(), {"figures": figures.record()})


def _load(folder: Path, subject: Subject) -> _Drafter:
    target = subject.target()
    file = drafter_for(target.trained_for, folder)
    architectures = file.config.get("architectures") or []
    config = subject.checkpoint.config
    if MEDUSA in architectures or HYDRA in architectures:
        kind: Kind = "hydra" if HYDRA in architectures else "medusa"
        taps, depth = taps_of(kind, config.num_layers), file.size("medusa_num_heads")
        vocabulary = file.tensor("vocabulary", file.size("draft_vocab_size")).astype(np.int64)
        student = make_student(kind, target, taps, heads=depth)
    elif EAGLE in architectures:
        weights = read_eagle(file, config)
        taps, depth, vocabulary = weights.taps, EXAM_DEPTH, weights.vocabulary
        if weights.embed is not None:
            target = replace(target, embed=weights.embed)
        if weights.head is not None:
            head = np.zeros_like(target.head)
            head[vocabulary] = weights.head
            target = replace(target, head=head)
        student = make_student("eagle", target, taps)
    elif RECURRENT in architectures:
        taps, depth = taps_of("recurrent", config.num_layers), EXAM_DEPTH
        vocabulary = read_recurrent(file, config).vocabulary
        student = make_student("recurrent", target, taps)
    elif file.config.get("model_type") in FAMILIES:
        return _whole_model(file.folder, subject)
    else:
        raise ModelError(
            f"The drafter {file.folder} is of the kind {architectures!r}; {EAGLE}, {RECURRENT}, {MEDUSA}, "
            f"{HYDRA} or a whole model can be measured."
        )
    load_weights(student, file)
    return _Drafter(student, taps, vocabulary, depth, target)


def _whole_model(path: Path, subject: Subject) -> _Drafter:
    """All of its layers are what a student starts with, which is the model."""
    draft = open_draft(path, subject.checkpoint.text, subject.cache)
    if draft.config.rope != RopeConfig(theta=draft.config.rope.theta):
        raise ModelError(f"The model {path} scales its rotation, and cannot be measured; try it with --speculator.")
    own = target_of(draft)
    missing = max(0, subject.checkpoint.config.vocab_size - own.vocab_size)  # tables are padded to sizes of their own
    embed, head = (np.pad(table, ((0, missing), (0, 0)), "edge") for table in (own.embed, own.head))
    student = make_student("draft", own, (), layers=own.layers)
    taps = taps_of("draft", subject.checkpoint.config.num_layers)
    return _Drafter(student, taps, np.arange(own.vocab_size), EXAM_DEPTH, replace(own, embed=embed, head=head))
