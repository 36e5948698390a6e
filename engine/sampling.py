"""Logits of a node to its next token: penalties, bias, grammar, noise, logprobs, each with the node's own path."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.sample import Draw, Logits

from .errors import GrammarError
from .request import SamplingParams, TokenLogprob
from .sequence import Sequence

Floats = NDArray[np.float32]

_MOST_KEPT = 2**31 - 1  # more than any vocabulary has; kernels count in 64 bits, clients in any number


def process_logits(logits: Floats, params: SamplingParams, prompt: Seq[int], output: Seq[int]) -> Floats:
    """Apply penalties and bias to logits [V], in float32; returns a new array.

    The repetition penalty (Keskar et al., arXiv 1909.05858) counts prompt and output; frequency and presence penalties
    count the output alone, as in OpenAI's API.
    """
    logits = logits.copy()
    if params.repetition_penalty != 1.0:
        seen = np.unique(np.array([*prompt, *output], np.int64))
        values, penalty = logits[seen], np.float32(params.repetition_penalty)
        logits[seen] = np.where(values > 0, values / penalty, values * penalty)
    if output and (params.frequency_penalty or params.presence_penalty):
        ids, counts = np.unique(np.array(output, np.int64), return_counts=True)
        penalties = params.frequency_penalty * counts + params.presence_penalty
        logits[ids] -= penalties.astype(np.float32)
    if params.logit_bias:
        bias = params.logit_bias
        logits[np.array(list(bias), np.int64)] += np.array(list(bias.values()), np.float32)
    return logits


def mask_logits(logits: Floats, mask: NDArray[np.uint32]) -> Floats:
    """Logits [V] of the tokens whose bit is set in mask [ceil(V / 32)], minus infinity elsewhere; a new array.

    Raises GrammarError where the model itself rules all of these out.
    """
    allowed = np.unpackbits(mask.astype("<u4", copy=False).view(np.uint8), count=logits.size, bitorder="little")
    masked = np.where(allowed.view(np.bool_), logits, np.float32(-np.inf))
    if not np.isfinite(masked.max()):
        raise GrammarError(
            "The model gives no probability to anything that the reply's form allows here; loosen the form, or use "
            "another model."
        )
    return masked


def token_logprob(logits: Floats, token: int, alternatives: int) -> TokenLogprob:
    """Log-softmax of processed logits [V], in float64, at `token` and at the `alternatives` likeliest tokens: fewer
    where no more may come."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max()
    logprobs = shifted - np.log(np.exp(shifted).sum())
    possible = int(np.isfinite(logprobs).sum())
    top = tuple((int(v), float(logprobs[v])) for v in _likeliest(logprobs, min(alternatives, possible)))
    return TokenLogprob(token, float(logprobs[token]), top)


def _likeliest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Indices of the `count` highest values, highest first; ties in order of index."""
    if count == 0:
        return np.empty(0, np.int64)
    floor = np.partition(values, -count)[-count]
    candidates = np.flatnonzero(values >= floor)  # ties with the last one among them
    return candidates[np.argsort(-values[candidates], kind="stable")][:count]


def draw_of(params: SamplingParams, position: int) -> Draw:
    """How the token at `position` is drawn."""
    return Draw(params.seed, position, params.temperature, min(params.top_k, _MOST_KEPT), params.top_p, params.min_p)


class Chooser:
    """Chooses the token after a node of one sequence's tree; made anew for each step.

    logits: [n, V], the row of node i of the walk at i - first. drawn: what was chosen for each row for the whole step
    at once, None where it is chosen now.
    """

    def __init__(self, seq: Sequence, logits: Logits, drawn: Seq[int | None], first: int, ops: Ops) -> None:
        self._seq = seq
        self._params = seq.request.sampling
        self._logits = logits
        self._drawn = drawn
        self._first = first
        self._ops = ops
        self.logprobs: list[TokenLogprob] = []
        self.error: str | None = None  # why no token could be chosen

    def __call__(self, node: int, path: tuple[int, ...]) -> int | None:
        """path: tokens chosen in this step on the way to `node`. None, and `error`, where the grammar breaks."""
        row = node - self._first
        if (drawn := self._drawn[row]) is not None:
            return drawn
        params = self._params
        logits = self._logits[row : row + 1]
        if not params.draws_alone:
            logits = self._ops.host(logits)
        if params.rewrites_logits:
            prompt = self._seq.request.prompt
            output = [*self._seq.tokens[len(prompt) :], *path]
            logits = process_logits(logits[0], params, prompt, output)[None]
        try:
            if (matcher := self._seq.matcher(path)) is not None:
                logits = mask_logits(logits[0], matcher.mask())[None]
        except GrammarError as error:
            self.error = str(error)
            return None
        token = self._ops.sample(logits, [draw_of(params, len(self._seq.tokens) + len(path))])[0]
        if params.logprobs is not None:
            self.logprobs.append(token_logprob(logits[0], token, params.logprobs))
        return token
