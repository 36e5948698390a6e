"""What drafters are told of a sequence."""

from __future__ import annotations

from paceline.spec.proposer import Ask

from .errors import GrammarError
from .grammar import Matcher
from .scheduler import Row
from .sequence import Sequence


def ask_of(row: Row) -> Ask:
    """For the guesses of one row of the plan."""
    seq, request = row.seq, row.seq.request
    return Ask(
        seq_id=request.id,
        tokens=seq.tokens,
        prompt_length=len(request.prompt),
        max_guesses=row.guesses,
        blocks=seq.blocks,
        seed=request.sampling.seed,
        temperature=request.sampling.temperature,
        prediction=request.speculation.prediction,
        reuse_key=request.speculation.reuse_key,
        rank=request.rank,
        constraint=_constraint(seq),
        stop_ids=request.sampling.stop_ids,
    )


def _constraint(seq: Sequence) -> Matcher | None:
    try:
        return seq.matcher()
    except GrammarError:  # the walk meets it as well, and ends the reply
        return None
