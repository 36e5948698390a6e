"""Logits of a node to its next token: penalties, bias, noise, logprobs, each with the tokens of the node's own path."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq

import numpy as np
import torch

from paceline.kernels.sample import Draw, Sample

from .request import SamplingParams, TokenLogprob
from .sequence import Sequence


def process_logits(logits: torch.Tensor, params: SamplingParams, prompt: Seq[int], output: Seq[int]) -> torch.Tensor:
    """Apply penalties and bias to logits [V] (float32); returns a new tensor.

    The repetition penalty (Keskar et al., arXiv 1909.05858) counts prompt and output; frequency and presence penalties
    count the output alone, as in OpenAI's API.
    """
    logits = logits.clone()
    if params.repetition_penalty != 1.0:
        seen = torch.tensor(np.unique(np.array([*prompt, *output], dtype=np.int64)), device=logits.device)
        values = logits[seen]
        penalty = params.repetition_penalty
        logits[seen] = torch.where(values > 0, values / penalty, values * penalty)
    if output and (params.frequency_penalty or params.presence_penalty):
        ids, counts = np.unique(np.array(output, dtype=np.int64), return_counts=True)
        penalties = params.frequency_penalty * counts + params.presence_penalty
        logits[torch.tensor(ids, device=logits.device)] -= torch.tensor(
            penalties, dtype=logits.dtype, device=logits.device
        )
    if params.logit_bias:
        _add_bias(logits, params.logit_bias)
    return logits


def _add_bias(logits: torch.Tensor, bias: Mapping[int, float]) -> None:
    ids = torch.tensor(list(bias), dtype=torch.int64, device=logits.device)
    logits[ids] += torch.tensor(list(bias.values()), dtype=logits.dtype, device=logits.device)


def token_logprob(logits: torch.Tensor, token: int, alternatives: int) -> TokenLogprob:
    """Log-softmax of processed logits [V] at `token` and at the `alternatives` likeliest tokens."""
    logprobs = torch.log_softmax(logits.double(), dim=-1)
    top: tuple[tuple[int, float], ...] = ()
    if alternatives:
        values, ids = logprobs.topk(min(alternatives, logprobs.numel()))
        top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return TokenLogprob(token, float(logprobs[token]), top)


class Chooser:
    """Chooses the token after a node of one sequence's tree; made anew for each step.

    logits: [n, V], the row of node i of the walk at i - first. greedy: the argmax of each row, computed for the whole
    step at once.
    """

    def __init__(self, seq: Sequence, logits: torch.Tensor, greedy: Seq[int], first: int, sample: Sample) -> None:
        self._seq = seq
        self._params = seq.request.sampling
        self._logits = logits
        self._greedy = greedy
        self._first = first
        self._sample = sample
        self.logprobs: list[TokenLogprob] = []

    def __call__(self, node: int, path: tuple[int, ...]) -> int:
        """path: tokens chosen in this step on the way to `node`."""
        params = self._params
        row = node - self._first
        if params.temperature == 0.0 and params.logprobs is None and not params.rewrites_logits:
            return self._greedy[row]
        logits = self._logits[row]
        if params.rewrites_logits:
            prompt = self._seq.request.prompt
            logits = process_logits(logits, params, prompt, [*self._seq.tokens[len(prompt) :], *path])
        draw = Draw(
            seed=params.seed,
            position=len(self._seq.tokens) + len(path),
            temperature=params.temperature,
            top_k=params.top_k,
            top_p=params.top_p,
            min_p=params.min_p,
        )
        token = self._sample(logits[None], [draw])[0]
        if params.logprobs is not None:
            self.logprobs.append(token_logprob(logits, token, params.logprobs))
        return token
