"""From logits to verdicts: walks each sequence's tree, choosing tokens and stopping where the reply ends."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from functools import partial

from paceline.kernels.backend import Ops
from paceline.spec.accept import walk
from paceline.spec.tree import TokenTree

from .request import Finish, TokenLogprob
from .runner import StepOutput
from .sampling import Chooser
from .scheduler import Plan
from .sequence import Sequence


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step means for one row of the plan.

    path: accepted nodes, root first. tokens: the new ones they led to, none when the row only prefilled.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...] = ()
    finish: Finish | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class Acceptor:
    def __init__(self, ops: Ops, context_length: int) -> None:
        self._ops = ops
        self._context_length = context_length

    def walk(self, plan: Plan, trees: Seq[TokenTree], out: StepOutput) -> list[Outcome]:
        """One outcome per row. The reply ends inside an accepted run where a stop id or a length says so."""
        wanted = any(row.samples and row.seq.request.sampling.takes_argmax for row in plan.rows)
        greedy = self._ops.greedy(out.logits) if wanted else []
        outcomes = []
        for row, tree, start in zip(plan.rows, trees, out.starts, strict=True):
            if not row.samples:
                outcomes.append(Outcome(tuple(range(len(tree)))))
                continue
            seq, first = row.seq, row.known - 1
            stop = start + len(tree) - first
            choose = Chooser(seq, out.logits[start:stop], greedy[start:stop], first, self._ops)
            path, tokens = walk(tree, row.known, choose, partial(self._is_last, seq))
            outcomes.append(
                Outcome(
                    path,
                    tokens,
                    seq.ending(tokens[-1], len(tokens), self._context_length),
                    tuple(choose.logprobs) if seq.request.sampling.logprobs is not None else None,
                )
            )
        return outcomes

    def _is_last(self, seq: Sequence, token: int, count: int) -> bool:
        return seq.ending(token, count, self._context_length) is not None
