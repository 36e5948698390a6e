"""What a step did, as it is told to those who wait for it."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from itertools import chain

from paceline.spec.planner import Draft
from paceline.spec.stats import label

from .acceptor import Outcome
from .request import Delta
from .scheduler import Plan
from .sequence import Sequence


def deltas(plan: Plan, drafts: Seq[Draft], outcomes: Seq[Outcome], step_ms: float) -> list[Delta]:
    """One for each row of the plan that has tokens or has ended; drafts and outcomes are the rows'."""
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
                    error=outcome.error,
                )
            )
    return told


def warm_delta(seq: Sequence) -> Delta:
    """That of a sequence whose keys and values were all there."""
    return Delta(
        request_id=seq.id,
        tokens=(),
        finish="prefilled",
        cached_tokens=seq.cached_tokens or 0,
        queued_ms=seq.queued_ms,
    )
