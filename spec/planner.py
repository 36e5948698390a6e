"""How many guesses now: choose the nodes that make the most tokens per millisecond; none is an ordinary answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .cost import StepCost, Work
from .gain import Gain
from .latency import Step, bearable
from .merge import NO_GUESSES, Guesses
from .proposer import Ask
from .stats import Acceptance
from .tree import TokenTree

Reason = Literal["prefill", "off", "no room", "no guesses", "not worth it", "budget", "best"]
"""Why a tree has the size it has. prefill: the prompt is not read to its end. off: the request or the server allows no
guesses, or no drafter makes any for it. no room: the reply, the context, the step or the cache has none left,
or it is left to someone of a higher class that waits. In these nobody was asked. no guesses: none came. not worth it:
each would lower the rate; or the guard made the step plain, and nobody was asked. budget: the sequence may have no
more. best: another would lower the rate or hold a higher class up, or there is none."""

_Choice = tuple[float, int, int]  # -(likelihood that the guess and all its ancestors are right), sequence, guess


class Draft(NamedTuple):
    """A tree ready to be verified, and what it was picked from.

    picks: [n - 1] node i + 1 is guess picks[i] of `guesses`.
    """

    tree: TokenTree
    reason: Reason
    seq_id: str = ""
    guesses: Guesses = NO_GUESSES
    picks: tuple[int, ...] = ()


@dataclass(slots=True)
class _Plan:
    """What one step would verify, and the rate that promises."""

    picks: list[list[int]]  # by sequence, likeliest first
    expected: list[float]  # by sequence: accepted guesses
    ms: float

    @property
    def tokens(self) -> float:
        return len(self.picks) + sum(self.expected)

    @property
    def rate(self) -> float:
        return self.tokens / self.ms


class _Asked(NamedTuple):
    """A drafter that costs time, the asks it answers, and the plan without it."""

    drafter: str
    asking: Sequence[int]
    before: _Plan


class Planner:
    """Sizes the trees of a step together, since they share its cost."""

    def __init__(self, cost: StepCost, acceptance: Acceptance | None = None) -> None:
        self._cost = cost
        self._acceptance = acceptance or Acceptance()
        self._gain = Gain()
        self._asked: _Asked | None = None  # the drafter asked last for the coming step

    def pays(
        self,
        drafter: str,
        cost_ms: float,
        asking: Sequence[int],
        asks: Sequence[Ask],
        guesses: Sequence[Guesses],
        step: Step,
    ) -> bool:
        """Whether the guesses a drafter would add are worth the time it takes; if so it must be asked.

        asking: those of the asks it would answer. guesses: what the asks have so far. step: what is computed anyway,
        the roots included.
        """
        plan = self._plan(asks, guesses, step)
        self._learn_gain(asks, guesses, plan)
        sequences = [(asks[i].seq_id, plan.expected[i]) for i in asking]
        pays = self._gain.pays(drafter, cost_ms, sequences, plan.rate, plan.ms)
        if pays:
            self._asked = _Asked(drafter, asking, plan)
        return pays

    def drafts(self, asks: Sequence[Ask], guesses: Sequence[Guesses], step: Step) -> list[Draft]:
        """Trees that maximise (sequences + accepted guesses) / ms. step: what is computed anyway."""
        plan = self._plan(asks, guesses, step)
        self._learn_gain(asks, guesses, plan)
        return [
            _draft(ask, mine, picks, _reason(ask, mine, picks))
            for ask, mine, picks in zip(asks, guesses, plan.picks, strict=True)
        ]

    def _plan(self, asks: Sequence[Ask], guesses: Sequence[Guesses], step: Step) -> _Plan:
        """Class after class: each chooses among what those above have left, and within what they bear."""
        # What a prompt's chunk takes does not count: it would make every guess beside it look cheap, though its time is
        # as dear as in the steps to come, and the next chunk waits for it. A row costs what it adds to the whole step.
        roots = Work(0)
        for ask in asks:
            roots = roots.beside(len(ask.tokens) - 1, 1)
        plan = _Plan([[] for _ in asks], [0.0] * len(asks), self._cost.ms(roots))
        seen_ms = [self._cost.seen_ms * len(ask.tokens) for ask in asks]
        rows, plain_ms = step.work.rows, plan.ms
        own_ms: dict[int, float] = {}  # of the step, for each class above: of its rows and those above it
        for rank in sorted({*step.streams, *(ask.rank for ask in asks)}):
            ranked: list[_Choice] = []
            for sequence, (ask, mine) in enumerate(zip(asks, guesses, strict=True)):
                if mine.tokens and ask.rank == rank:
                    ranked += self._ranked(sequence, ask, mine)
            if ranked:
                ranked.sort()  # a child is never likelier than its parent and numbered after it, so parents stay first
                # Before guesses the step is this much longer than the plan, which leaves chunks out.
                beside_ms = self._cost.ms(step.work) - plain_ms if own_ms else 0.0
                rows = self._take_best(plan, ranked, rows, seen_ms, bearable(own_ms, rank) - beside_ms)
            if rank in step.streams:
                own_ms[rank] = self._cost.ms(step.streams[rank]) + plan.ms - plain_ms
        return plan

    def _ranked(self, sequence: int, ask: Ask, guesses: Guesses) -> list[_Choice]:
        """The guesses of one sequence that its budget holds, likeliest first."""
        probability = self._acceptance.probability
        ranked: list[_Choice] = []
        likely: list[float] = []
        seq_id = ask.seq_id
        for parent, depth, votes in zip(guesses.parents, guesses.depths, guesses.votes, strict=True):
            p = probability(seq_id, depth, votes)
            if parent >= 0:
                p *= likely[parent]
            likely.append(p)
            ranked.append((-p, sequence, len(ranked)))
        ranked.sort()
        return ranked[: ask.max_guesses]

    def _take_best(
        self, plan: _Plan, ranked: Sequence[_Choice], rows: int, seen_ms: Sequence[float], most_ms: float
    ) -> int:
        """Add as many choices, likeliest first, as give the highest rate, looking past bumps of the cost curve.

        seen_ms: what a row looks at, by sequence. most_ms: the plan takes no longer with them. Returns the rows the
        step then has.
        """
        by_rows = self._cost.by_rows(rows + len(ranked))
        tokens, keys_ms = plan.tokens, plan.ms - by_rows[rows]
        best, best_rate = 0, tokens / plan.ms
        for count, (negative, sequence, _) in enumerate(ranked, start=1):
            tokens -= negative
            keys_ms += seen_ms[sequence]
            ms = by_rows[rows + count] + keys_ms
            if ms > most_ms:
                break
            if tokens > best_rate * ms:
                best, best_rate, plan.ms = count, tokens / ms, ms
        for negative, sequence, guess in ranked[:best]:
            plan.picks[sequence].append(guess)
            plan.expected[sequence] -= negative
        return rows + best

    def _learn_gain(self, asks: Sequence[Ask], guesses: Sequence[Guesses], after: _Plan) -> None:
        """What the drafter asked last added, in tokens, less what its rows could have made at the rate without it.

        A sequence it still catches up with says nothing about its guesses.
        """
        asked, self._asked = self._asked, None
        if asked is None or len(asked.before.expected) != len(asks):  # of a step that broke
            return
        before = asked.before
        more = {
            i: max(after.expected[i] - before.expected[i], 0.0)
            for i in asked.asking
            if asked.drafter not in guesses[i].catching_up
        }
        net = after.tokens - before.rate * after.ms
        share = max(net, 0.0) / sum(more.values()) if any(more.values()) else 0.0
        for i, gained in more.items():
            self._gain.observe(asked.drafter, asks[i].seq_id, before.expected[i], gained * share)

    def observe_step(self, work: Work, ms: float) -> None:
        """A step took so long."""
        self._cost.observe(work, ms)

    def chances(self, draft: Draft) -> list[float]:
        """Of each pick, how often such a guess is right given that its parent is: what decided, until `observe`."""
        depths, votes = draft.guesses.depths, draft.guesses.votes
        return [self._acceptance.probability(draft.seq_id, depths[guess], votes[guess]) for guess in draft.picks]

    def observe(self, draft: Draft, tokens: Sequence[int]) -> None:
        """Learn from the tokens that came: they judge every guess on their way, verified or not.

        So a drafter whose guesses are not worth a row is still watched, at no cost, and can recover.
        """
        guesses = draft.guesses
        if not guesses.tokens:
            return
        at = -1
        for depth, token in enumerate(tokens, start=1):
            right = -1
            for guess, parent in enumerate(guesses.parents):
                if parent == at:
                    accepted = guesses.tokens[guess] == token
                    self._acceptance.observe(draft.seq_id, depth, guesses.votes[guess], accepted)
                    right = guess if accepted else right
            if right < 0:
                return
            at = right

    def forget(self, seq_id: str) -> None:
        """The sequence is gone."""
        self._acceptance.forget(seq_id)
        self._gain.forget(seq_id)


def _reason(ask: Ask, guesses: Guesses, picks: Sequence[int]) -> Reason:
    if not len(guesses):
        return "no guesses"
    if not picks:
        return "not worth it"
    return "budget" if len(picks) == ask.max_guesses < len(guesses) else "best"


def _draft(ask: Ask, guesses: Guesses, picks: Sequence[int], reason: Reason) -> Draft:
    """Lay the picks, given likeliest first, out depth first: the likeliest path then needs no moving."""
    children: dict[int, list[int]] = {}
    for guess in picks:
        children.setdefault(guesses.parents[guess], []).append(guess)
    tokens, parents, laid = [ask.tokens[-1]], [-1], []
    node_of = {-1: 0}
    stack = children.get(-1, [])[::-1]  # picks come likeliest first, and a stack gives the last one first
    while stack:
        guess = stack.pop()
        node_of[guess] = len(tokens)
        tokens.append(guesses.tokens[guess])
        parents.append(node_of[guesses.parents[guess]])
        laid.append(guess)
        stack += children.get(guess, [])[::-1]
    return Draft(TokenTree(tuple(tokens), tuple(parents)), reason, ask.seq_id, guesses, tuple(laid))
