"""What a drafter is: a few methods. It never touches the engine, and needs to give no distribution."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Constraint(Protocol):
    """What the coming tokens must keep to."""

    def fits(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, from the first on, may come next, one after the other."""

    def forced(self) -> Sequence[int]:
        """Tokens that must come next, one after the other; empty where there is a choice."""


class Ask(NamedTuple):
    """Guesses are wanted for one sequence.

    tokens: the prompt and what is committed, the pending token last; read only, it grows after the call.
    max_guesses: a proposal has at most this many. `prompt_length` of the tokens are the prompt.
    blocks: its block table, which covers slots for the guesses it may have; read only, valid during the call. seed,
    temperature: how the next tokens are chosen. prediction: output the client expects, as far as it said so. reuse_key:
    replies made under the same key may be drafted from, "" for none; two keys never share anything. rank: its class of
    service, 0 the highest; it speculates with what those above leave. constraint: what its tokens must keep to; valid
    during the call. stop_ids: tokens that end the reply.
    """

    seq_id: str
    tokens: Sequence[int]
    prompt_length: int
    max_guesses: int
    blocks: Sequence[int] = ()
    seed: int = 0
    temperature: float = 0.0
    prediction: Sequence[int] = ()
    reuse_key: str = ""
    rank: int = 0
    constraint: Constraint | None = None
    stop_ids: Set[int] = frozenset()


class Proposal(NamedTuple):
    """A forest of guesses below the pending token, parents before children.

    tokens, parents, probabilities: [m]; parents[i] is a guess before i, or -1 for the pending token.
    probabilities[i] estimates how often guess i is right given that its parent is. `source` names the drafter.
    catching_up: it is empty because the drafter needs more steps to read the text so far.
    """

    source: str
    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    catching_up: bool = False


class Verdict(NamedTuple):
    """What a step accepted of one sequence.

    path: nodes, root first. start: position of the first. features: for each drafter that reads hidden states, in the
    order in which they were given to the model, [len(path), W] of the accepted nodes; the drafter owns them. hidden:
    [H] of the last accepted node, before the final norm; None where a prefill goes on, or nobody reads it.
    """

    seq_id: str
    path: tuple[int, ...]
    start: int = 0
    features: tuple[NDArray[np.float32], ...] = ()
    hidden: NDArray[np.float32] | None = None


class Proposer(Protocol):
    """A drafter. `name` is what a request may ask for."""

    name: str
    needs_hidden: bool  # whether it drafts from the model's hidden states

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        """Milliseconds `propose` takes for these, as measured lately, with what it has to catch up with first spread
        over the steps that gain by it; 0 for a drafter that is always worth asking, or has nothing to do for them.
        """
        ...

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        """One proposal per ask; an empty one is an ordinary answer.

        Not called in every step: a drafter that costs time is asked when that pays, and has to catch up then.
        """
        ...

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from what was accepted, or roll private state back."""
        ...

    def forget(self, seq_id: str) -> None:
        """The sequence is gone."""
        ...
