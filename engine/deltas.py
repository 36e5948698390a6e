"""What a step did, as it is told to those who wait for it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from itertools import chain

from paceline.spec.planner import Draft
from paceline.spec.stats import label

from .acceptor import Outcome
from .request import Delta, TreeTrace
from .scheduler import Plan, Row
from .sequence import Sequence

Chances = Callable[[Draft], Seq[float]]
"""Of each guess that is verified, how likely it was taken to be right given that its parent is."""


def deltas(plan: Plan, drafts: Seq[Draft], outcomes: Seq[Outcome], step_ms: float, chances: Chances) -> list[Delta]:
    """One for each row of the plan that has tokens or has ended; drafts and outcomes are the rows'.

    chances: is asked for rows whose request wants a trace, before anybody learns from the step.
    """
    told = []
    for row, draft, outcome in zip(plan.rows, drafts, outcomes, strict=True):
        if outcome.tokens or outcome.finish:
            accepted = outcome.path[row.known :]  # a row that may guess knows one token: node i + 1 is pick i
            right = [draft.guesses.votes[draft.picks[node - 1]] for node in accepted]
            told.append(
                Delta(
                    request_id=row.seq.id,
                    tokens=outcome.tokens,
                    finish=outcome.finish,
                    logprobs=outcome.logprobs,
                    drafted=len(draft.picks),
                    accepted=len(accepted),
                    source=label(chain.from_iterable(right)),
                    reason=draft.reason,
                    cached_tokens=row.seq.cached_tokens or 0,
                    queued_ms=row.seq.queued_ms,
                    step_ms=step_ms,
                    trace=_trace(row, draft, outcome, chances) if row.seq.request.speculation.trace else None,
                    error=outcome.error,
                )
            )
    return told


def _trace(row: Row, draft: Draft, outcome: Outcome, chances: Chances) -> TreeTrace | None:
    """What stands before the last known token is no part of it."""
    if not row.samples:
        return None
    root = row.known - 1
    votes = [draft.guesses.votes[guess] for guess in draft.picks]
    path = tuple([node - root for node in outcome.path[root:]])
    return TreeTrace(
        tokens=draft.tree.tokens[root:],
        parents=(-1, *[parent - root for parent in draft.tree.parents[root + 1 :]]),
        sources=("", *map(label, votes)),
        estimates=(1.0, *[max(vote.estimate for vote in voters) for voters in votes]),
        chances=(1.0, *chances(draft)),
        path=path,
        bonus=outcome.tokens[-1] if len(outcome.tokens) == len(path) else None,
    )


def warm_delta(seq: Sequence) -> Delta:
    """That of a sequence whose keys and values were all there."""
    return Delta(
        request_id=seq.id,
        tokens=(),
        finish="prefilled",
        cached_tokens=seq.cached_tokens or 0,
        queued_ms=seq.queued_ms,
    )
