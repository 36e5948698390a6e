"""Which drafters a process has: the free ones, and trained ones that fit the model."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import BackendError, Ops
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.linear import ArrayMatrix, Packed
from paceline.spec import pretrained
from paceline.spec.draft_model import DraftModel, TrimmedModel
from paceline.spec.drafters import AUTO, NONE
from paceline.spec.eagle import ARCHITECTURE as EAGLE
from paceline.spec.eagle import FORM, EagleModel, EagleWeights
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.forced import Forced
from paceline.spec.heads import FORM as HEADS_FORM
from paceline.spec.heads import HYDRA, MEDUSA, FinalNorm, Heads, HeadsWeights
from paceline.spec.hydra import HydraDrafter, HydraModel
from paceline.spec.medusa import MedusaDrafter, MedusaModel
from paceline.spec.proposer import Proposer
from paceline.spec.recurrent import ARCHITECTURE as RECURRENT
from paceline.spec.recurrent import RecurrentDrafter, RecurrentModel, RecurrentWeights
from paceline.spec.suffix import Suffix

from .draft_checkpoint import draft_form, open_draft
from .drafter_file import DrafterFile, answers
from .eagle_file import read_eagle
from .errors import ConfigError, ModelError
from .heads_file import PUBLISHED, read_hydra, read_medusa
from .model.assets import TextAssets
from .model.checkpoint import Checkpoint
from .model.config import FAMILIES, ModelConfig, RopeConfig
from .model.decoder import Decoder, cache_shape, rotation
from .model.weights import ModelWeights, model_fingerprint
from .recurrent_file import read_recurrent

_log = logging.getLogger(__name__)

FREE: Mapping[str, Callable[[], Proposer]] = {Suffix.name: Suffix, Forced.name: Forced}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a drafter is given of the engine it drafts for.

    head_rows: the target's head [N, H] of the tokens named. blocks: of the target's cache. index: which of a verdict's
    features are its own. token_ms: what a token costs now without trained drafters.
    """

    ops: Ops
    decoder: Decoder
    head_rows: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    norm: FinalNorm
    blocks: int
    context_length: int
    index: int
    token_ms: Callable[[], float]


class Speculator(Protocol):
    """A drafter that waits for its engine."""

    @property
    def name(self) -> str:
        """What a request may ask for."""
        ...

    def taps(self, ops: Ops) -> Mapping[int, Packed] | None:
        """What the model's pass shall compute for it, see `Decoder`; None for one that needs no hidden states."""
        ...

    def build(self, around: Surroundings) -> Proposer: ...


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A drafter that needs nothing."""

    proposer: Proposer

    @property
    def name(self) -> str:
        return self.proposer.name

    def taps(self, ops: Ops) -> None:
        return None

    def build(self, around: Surroundings) -> Proposer:
        return self.proposer


@dataclass(frozen=True, slots=True, eq=False)
class EagleSpeculator:
    weights: EagleWeights
    name: str = EagleDrafter.name

    def taps(self, ops: Ops) -> Mapping[int, Packed]:
        return {
            tap: ops.pack(ArrayMatrix(values), form=FORM)
            for tap, values in zip(self.weights.taps, self.weights.projections, strict=True)
        }

    def build(self, around: Surroundings) -> Proposer:
        weights, ops = self.weights, around.ops
        turn = rotation(RopeConfig(theta=weights.rope_theta), weights.head_dim, around.context_length, ops.constant)
        head = around.head_rows(weights.vocabulary) if weights.head is None else weights.head
        model = EagleModel(weights, ops, turn, around.decoder.embed_table, head)
        cache = ops.allocate(weights.cache_shape, around.blocks)
        return EagleDrafter(model, cache, ops, index=around.index, token_ms=around.token_ms)


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentSpeculator:
    weights: RecurrentWeights
    name: str = RecurrentDrafter.name

    def taps(self, ops: Ops) -> None:
        return None

    def build(self, around: Surroundings) -> Proposer:
        head = around.head_rows(self.weights.vocabulary)
        model = RecurrentModel(self.weights, around.ops, around.decoder.embed_table, head)
        return RecurrentDrafter(model, token_ms=around.token_ms)


@dataclass(frozen=True, slots=True, eq=False)
class HeadsSpeculator:
    """make: a drafter from the packed heads."""

    weights: HeadsWeights
    name: str
    make: Callable[[Heads, Surroundings], Proposer]

    def taps(self, ops: Ops) -> None:
        return None

    def build(self, around: Surroundings) -> Proposer:
        rows = None
        if self.weights.outs is None:
            rows = around.decoder.head
            if self.weights.vocabulary is not None:
                rows = around.ops.pack(ArrayMatrix(around.head_rows(self.weights.vocabulary)), form=HEADS_FORM)
        return self.make(Heads(self.weights, around.ops, rows), around)


@dataclass(frozen=True, slots=True, eq=False)
class DraftSpeculator:
    """A whole model."""

    checkpoint: Checkpoint
    name: str = DraftModel.name

    def taps(self, ops: Ops) -> None:
        return None

    def build(self, around: Surroundings) -> Proposer:
        config, ops = self.checkpoint.config, around.ops
        decoder = Decoder(config, self.checkpoint.load(), ops, context_length=around.context_length, form=draft_form)
        self.checkpoint.close()
        model = TrimmedModel(decoder, config.vocab_size, around.decoder.config.vocab_size)
        cache = ops.allocate(cache_shape(config), around.blocks)
        return DraftModel(model, cache, ops, token_ms=around.token_ms)


@dataclass(frozen=True, slots=True)
class Target:
    """The model that drafters are looked for. cache: where what is derived from a file is kept; None: the usual one."""

    config: ModelConfig
    weights: ModelWeights
    ops: Ops
    text: TextAssets
    cache: Path | None = None


def find_speculators(wanted: str, target: Target) -> list[Speculator]:
    """wanted: "auto", "none", or names, folders and files of drafters with commas between them.

    A name wins over a folder or file called so; a path with a slash, as in ./recurrent, is never a name. "auto" takes
    the free ones and what is shipped for this very model, and leaves out, with a warning, what does not fit. Raises
    ConfigError for a name that is not known, ModelError for a drafter that was asked for and does not fit.
    """
    if wanted == NONE:
        return []
    fingerprint = model_fingerprint(target.weights)
    if wanted == AUTO:
        found: list[Speculator] = [Ready(make()) for make in FREE.values()]
        for folder in pretrained.folders():
            try:
                file = DrafterFile(folder)
                if file.config.get("trained_for") == fingerprint:
                    found.append(_trained(file, target))
            except ModelError as error:
                _log.warning("Left out a shipped drafter: %s", error)
        return found
    named = [_named(name.strip(), target, fingerprint) for name in wanted.split(",")]
    kinds = [each.name for each in named]
    if twice := next((kind for kind in kinds if kinds.count(kind) > 1), None):
        raise ConfigError(
            f"--speculator names two drafters of the kind {twice!r}; requests could not tell them apart; leave one out."
        )
    return named


def _named(name: str, target: Target, fingerprint: int) -> Speculator:
    if name in FREE:
        return Ready(FREE[name]())
    if name in (AUTO, NONE):
        raise ConfigError(f"--speculator {name} stands alone; leave it out, or name nothing beside it.")
    if "/" not in name and (shipped := _shipped(fingerprint).get(name)) is not None:
        return _trained(shipped, target)  # before a folder that happens to be called so; ./name is the folder
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - a ~user that is not known is no error, but no folder either
    if name and answers(path.is_dir):
        file = DrafterFile(path)
        if file.config.get("trained_for", fingerprint) != fingerprint:
            _log.warning("The drafter %s was trained for another model: it may seldom be right about this one.", path)
        return _trained(file, target)
    if path.suffix.lower() == ".gguf" and answers(path.is_file):
        return _whole_model(path, target)
    known = ", ".join((AUTO, NONE, *FREE, *_shipped(fingerprint)))
    missing = f"folder or model file {name[:60]!r}" if "/" in name else f"speculator {name[:60]!r} for this model"
    raise ConfigError(f"There is no {missing}; choose {known}, or the folder of a drafter or model.")


def _shipped(fingerprint: int) -> dict[str, DrafterFile]:
    """What is shipped for this very model, by the name of its kind."""
    found: dict[str, DrafterFile] = {}
    for folder in pretrained.folders():
        file = DrafterFile(folder)
        if file.config.get("trained_for") == fingerprint:
            found.setdefault(folder.name.rpartition("-")[2], file)
    return found


def _trained(file: DrafterFile, target: Target) -> Speculator:
    """The reader for what the folder says it holds."""
    reader = next((_READERS[each] for each in file.architectures if each in _READERS), None)
    if reader is None and PUBLISHED in file.config:
        reader = _medusa
    if reader is not None:
        return reader(file, target)
    if file.config.get("model_type") not in FAMILIES:
        raise ModelError(
            f"The drafter {file.folder} is of the kind {repr(file.config.get('architectures'))[:60]}; this server "
            f"reads {', '.join(_READERS)}, published Medusa heads, and models it could serve."
        )
    return _whole_model(file.folder, target)


def _eagle(file: DrafterFile, target: Target) -> Speculator:
    weights = read_eagle(file, target.config)
    _check(weights.cache_shape, file.folder, target.ops)
    return EagleSpeculator(weights)


def _medusa(file: DrafterFile, target: Target) -> Speculator:
    def make(heads: Heads, around: Surroundings) -> Proposer:
        return MedusaDrafter(MedusaModel(heads, around.norm))

    return HeadsSpeculator(read_medusa(file, target.config), MedusaDrafter.name, make)


def _hydra(file: DrafterFile, target: Target) -> Speculator:
    def make(heads: Heads, around: Surroundings) -> Proposer:
        model = HydraModel(heads, around.norm, around.decoder.embed_table)
        return HydraDrafter(model, token_ms=around.token_ms)

    return HeadsSpeculator(read_hydra(file, target.config), HydraDrafter.name, make)


def _whole_model(path: Path, target: Target) -> Speculator:
    checkpoint = open_draft(path, target.text, target.cache)
    _check(cache_shape(checkpoint.config), path, target.ops)
    return DraftSpeculator(checkpoint)


_READERS: Mapping[str, Callable[[DrafterFile, Target], Speculator]] = {
    RECURRENT: lambda file, target: RecurrentSpeculator(read_recurrent(file, target.config)),
    EAGLE: _eagle,
    MEDUSA: _medusa,
    HYDRA: _hydra,
}


def _check(shape: CacheShape, path: Path, ops: Ops) -> None:
    try:
        ops.check(shape)
    except BackendError as error:
        raise ModelError(f"The drafter {path} cannot run here: {error}") from error
