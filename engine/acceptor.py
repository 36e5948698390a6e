"""From logits to verdicts: walks each sequence's tree, choosing tokens and stopping where the reply ends."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.sample import Draw
from paceline.spec.accept import walk
from paceline.spec.proposer import Verdict
from paceline.spec.tree import TokenTree

from .request import Finish, TokenLogprob
from .runner import StepOutput
from .sampling import Chooser, draw_of
from .scheduler import Plan
from .sequence import Sequence


class Outcome(NamedTuple):
    """What a step means for one row of the plan.

    path: accepted nodes, root first. tokens: the new ones they led to, none when the row only prefilled. error: why the
    reply cannot go on behind them.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...] = ()
    finish: Finish | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    error: str | None = None


class Acceptor:
    def __init__(self, ops: Ops, context_length: int) -> None:
        self._ops = ops
        self._context_length = context_length

    def draws(self, plan: Plan, trees: Seq[TokenTree]) -> list[Draw | None]:
        """How each sampled row of the step is drawn, in the order of its logits; None where only the walk can say."""
        draws: list[Draw | None] = []
        for row, tree in zip(plan.rows, trees, strict=True):
            if row.samples:
                params, first = row.seq.request.sampling, row.known - 1
                if params.draws_alone:
                    start = len(row.seq.tokens) - first
                    draws += [draw_of(params, start + depth) for depth in tree.depths[first:]]
                else:
                    draws += [None] * (len(tree) - first)
        return draws

    def walk(self, plan: Plan, trees: Seq[TokenTree], out: StepOutput, drawn: Seq[int | None]) -> list[Outcome]:
        """One outcome per row. The reply ends inside an accepted run where a stop id or a length says so.

        drawn: what was chosen for each row of the logits, None where it is chosen here.
        """
        outcomes = []
        for row, tree, start in zip(plan.rows, trees, out.starts, strict=True):
            if not row.samples:
                warm = row.seq.is_warm_after(row.known)
                outcomes.append(Outcome(tuple(range(len(tree))), finish="prefilled" if warm else None))
                continue
            seq, first = row.seq, row.known - 1
            stop = start + len(tree) - first
            choose = Chooser(seq, out.logits[start:stop], drawn[start:stop], first, self._ops)
            path, tokens = walk(tree, row.known, choose, partial(self._is_last, seq))
            ends: Finish | None = "error"
            if choose.error is None:
                ends = seq.ending(tokens[-1], len(tokens), self._context_length)
            logprobs = tuple(choose.logprobs) if seq.request.sampling.logprobs is not None else None
            outcomes.append(Outcome(path, tokens, ends, logprobs, choose.error))
        return outcomes

    def verdicts(self, plan: Plan, outcomes: Seq[Outcome], out: StepOutput, reads: Seq[bool]) -> list[Verdict]:
        """What drafters learn. reads: of each row of the plan, whether one of its drafters reads hidden states."""
        features, hidden = [], None
        if any(reads):  # nobody else waits for values to come from the device
            features, hidden = [self._ops.host(each) for each in out.features], self._ops.host(out.hidden)
        verdicts = []
        rows = zip(plan.rows, outcomes, out.offsets, out.starts, reads, strict=True)
        for row, outcome, offset, start, wanted in rows:
            mine: tuple[NDArray[np.float32], ...] = ()
            last = None
            if wanted:
                mine = tuple([_rows(each, offset, outcome.path) for each in features])
                if hidden is not None and outcome.tokens:
                    last = hidden[start + outcome.path[-1] - row.known + 1].copy()
            verdicts.append(
                Verdict(
                    row.seq.id,
                    outcome.path,
                    start=row.start,
                    features=mine,
                    hidden=last,
                )
            )
        return verdicts

    def _is_last(self, seq: Sequence, token: int, count: int) -> bool:
        return seq.ending(token, count, self._context_length) is not None


def _rows(values: NDArray[np.float32], first: int, path: Seq[int]) -> NDArray[np.float32]:
    """A copy of the rows of accepted nodes, the root's being `first`."""
    if path[-1] == len(path) - 1:  # the likeliest path comes first in a tree
        return values[first : first + len(path)].copy()
    return values[[first + node for node in path]]
