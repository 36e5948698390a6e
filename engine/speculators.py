"""Which drafters a process has: the free ones, and trained ones that fit the model."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import BackendError, Ops
from paceline.kernels.linear import ArrayMatrix, Packed, float_pieces
from paceline.spec import pretrained
from paceline.spec.drafters import AUTO
from paceline.spec.eagle import FORM, EagleModel, EagleWeights
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.nothing import Nothing
from paceline.spec.proposer import Proposer
from paceline.spec.suffix import Suffix

from .drafter_file import DrafterFile
from .eagle_file import ARCHITECTURE as EAGLE
from .eagle_file import read_eagle
from .errors import ConfigError, ModelError
from .model.config import ModelConfig, RopeConfig
from .model.decoder import Decoder, rotation
from .model.weights import ModelWeights

_log = logging.getLogger(__name__)

FREE: Mapping[str, Callable[[], Proposer]] = {Suffix.name: Suffix}
_PIECE = 4096  # rows of the head read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a drafter is given of the engine it drafts for.

    head_rows: the target's head [N, H] of the tokens named. blocks: of the target's cache. index: which of a verdict's
    features are its own. token_ms: what a token costs now without trained drafters.
    """

    ops: Ops
    decoder: Decoder
    head_rows: Callable[[NDArray[np.int64]], NDArray[np.float32]]
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


def find_speculators(wanted: str, config: ModelConfig, weights: ModelWeights, ops: Ops) -> list[Speculator]:
    """wanted: "auto", "none", or names and folders of drafters with commas between them.

    "auto" takes the free ones and what is shipped for this very model, and leaves out, with a warning, what does not
    fit. Raises ConfigError for a name that is not known, ModelError for a drafter that was asked for and does not fit.
    """
    if wanted == Nothing.name:
        return []
    fingerprint = model_fingerprint(weights)
    if wanted == AUTO:
        found: list[Speculator] = [Ready(make()) for make in FREE.values()]
        for folder in pretrained.folders():
            try:
                file = DrafterFile(folder)
                if file.config.get("trained_for") == fingerprint:
                    found.append(_trained(file, config, ops))
            except ModelError as error:
                _log.warning("Left out a shipped drafter: %s", error)
        return found
    return [_named(name.strip(), config, fingerprint, ops) for name in wanted.split(",")]


def _named(name: str, config: ModelConfig, fingerprint: int, ops: Ops) -> Speculator:
    if name in FREE:
        return Ready(FREE[name]())
    if Path(name).is_dir():
        return _trained(DrafterFile(Path(name)), config, ops)
    for folder in pretrained.folders():
        if folder.name.endswith(f"-{name}") and (file := DrafterFile(folder)).config.get("trained_for") == fingerprint:
            return _trained(file, config, ops)
    raise ConfigError(
        f"There is no speculator {name!r} for this model; choose {AUTO}, {Nothing.name}, {', '.join(FREE)}, one that "
        "is shipped for the model, or the folder of a drafter."
    )


def _trained(file: DrafterFile, config: ModelConfig, ops: Ops) -> Speculator:
    architectures = file.config.get("architectures") or []
    if EAGLE not in architectures:
        raise ModelError(f"The drafter {file.folder} is of the kind {architectures!r}; this server reads {EAGLE}.")
    weights = read_eagle(file, config)
    try:
        ops.check(weights.cache_shape)
    except BackendError as error:
        raise ModelError(f"The drafter {file.folder} cannot run here: {error}") from error
    return EagleSpeculator(weights)


def model_fingerprint(weights: ModelWeights) -> int:
    """The same for every file of one model, however its matrices are stored: vectors keep their values."""
    return zlib.crc32(np.ascontiguousarray(weights.norm, np.float32).tobytes())


def head_rows(weights: ModelWeights, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Rows `ids`, ascending, of the head."""
    rows = np.empty((len(ids), weights.lm_head.shape[1]), np.float32)
    first = 0
    for piece in float_pieces(weights.lm_head, _PIECE):
        begin, end = np.searchsorted(ids, (first, first + len(piece)))
        rows[begin:end] = piece[ids[begin:end] - first]
        first += len(piece)
    return rows
