"""A drafter with keys and values of its own: catch up with what was committed, then grow a tree best first.

Its cache has the target's slots, so block tables serve both. What stands in a slot only decides how good guesses are,
never what the text is.

A sequence that is far behind, as every one is that has not been drafted for yet, catches up in passes of its own, one a
step and no longer than a plain step, so that streams beside it go on; until then nothing is guessed for it.

     entries of a sequence whose tokens are 0 … n-1, token n-1 pending; end is n - `behind`:
     [first ......... done)   [done ......... end)      [end …)
      in the cache             committed, not run yet    guessed nodes, rewritten once the truth is known
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.paging import BLOCK_SIZE

from .cached_model import CachedModel
from .cached_spine import MOST_ROWS, CachedSpine, lengthened
from .draft_batch import Rows, batch_of
from .guess_tree import Floats, GuessTree
from .proposer import Ask, Proposal
from .spine import MOST_LEVELS
from .tree_drafter import TreeDrafter, draw_after, ranked, smoothed

_USUAL = 8  # rows that are due in an ordinary step: its own guesses leave 7 at most. Whoever has more is behind
_FEWEST, _MOST = 32, 512  # rows of a pass of catching up: more than come meanwhile, and no more than a pass may hold
_WORTH = 0.5  # of a plain step's time that catching up may take of each step to come


@dataclass(slots=True)
class CacheState:
    """One sequence: entries [first, done) are in the cache.

    chain: see `mark`.
    """

    first: int
    done: int
    chain: list[int] = field(default_factory=list)

    def mark(self, tokens: Sequence[int], block: int) -> int:
        """Stands for what the entries of the sequence's block were computed from: all tokens up to its end.

        Where the last entry reads the token after the block too, that one is left out: it costs a guess at most.
        """
        for i in range(len(self.chain), block + 1):
            above = self.chain[-1] if self.chain else 0
            self.chain.append(hash((above, *tokens[i * BLOCK_SIZE : (i + 1) * BLOCK_SIZE])))
        return self.chain[block]


State = TypeVar("State", bound=CacheState)


class CachedDrafter(TreeDrafter, Generic[State]):
    """Guesses with a `CachedModel`. cache: with as many blocks as the target's."""

    behind: ClassVar[int]  # 1 where an entry needs the token after its own, and the last one waits for it; else 0
    reads_hidden: ClassVar[bool]  # whether a guess's pass reads what the pass above it made
    window: ClassVar[int | None] = None  # positions it looks back on

    def __init__(self, model: CachedModel, cache: Cache, ops: Ops, token_ms: Callable[[], float]) -> None:
        super().__init__(token_ms)
        self._model = model
        self._cache = cache
        self._ops = ops
        self._spine = None
        if ops.guessing is not None:
            self._spine = CachedSpine(ops, ops.guessing, model, reads_hidden=self.reads_hidden)
        self._states: dict[str, State] = {}
        self._marks: dict[int, int] = {}  # block -> `CacheState.mark` of the entries in it
        self._row_ms: float | None = None  # of a pass of catching up, by its rows

    @abstractmethod
    def _ready(self, ask: Ask) -> State | None:
        """The sequence's state, with at least one entry to run; None where it cannot be drafted for now."""

    def _features(self, state: State, count: int) -> Floats | None:
        """[count, H], what the pass reads of the next entries besides their tokens."""
        return None

    def _entered(self, state: State, count: int) -> None:
        """The next entries are in the cache."""
        state.done += count

    def forget(self, seq_id: str) -> None:
        self._states.pop(seq_id, None)

    def restart(self) -> None:
        super().restart()
        self._row_ms = None

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        """0 where there is nothing to do for any of them."""
        served = [ask for ask in asks if self._serves(ask)]
        return super().cost_ms(served) + sum(map(self._investment_ms, served)) if served else 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        self._catch_up([ask for ask in asks if self._serves(ask)])
        proposals = super().propose(asks)
        return [
            each._replace(catching_up=True) if not each.tokens and self._is_behind(ask) else each
            for ask, each in zip(asks, proposals, strict=True)
        ]

    def _serves(self, ask: Ask) -> bool:
        """Whether to draft for the sequence or to catch up with it; it alone decides, and not for those beside it."""
        return self._ready(ask) is not None and self._investment_ms(ask) <= _WORTH * self._token_ms()

    def _is_behind(self, ask: Ask) -> bool:
        return self._ready(ask) is not None and self._due(ask) > _USUAL

    def _investment_ms(self, ask: Ask) -> float:
        """What catching up takes, of each step that will have something of it.

        A reply is taken to go on for as long as it has so far: nobody knows better, and so a short one never pays for
        its long prompt, a long one always does in the end, and neither loses more than a part of what it took.
        0 before a row was measured: the first pass is short and tells.
        """
        due = self._due(ask)
        if due <= _USUAL or self._row_ms is None:
            return 0.0
        return due * self._row_ms / max(len(ask.tokens) - ask.prompt_length, 1)

    def _catch_up(self, asks: Sequence[Ask]) -> None:
        """One pass for those that are behind, if any: like a prompt's chunk beside streams no longer than a plain step,
        unless `_FEWEST` rows are.
        """
        room = _FEWEST
        if self._row_ms is not None:
            room = int(min(max(self._token_ms() / self._row_ms, _FEWEST), _MOST))
        group: list[tuple[Ask, int]] = []
        for ask in asks:
            due = self._due(ask)
            if due > _USUAL and room:
                count = min(due - 1, room)  # the last one tells what follows it
                group.append((ask, count))
                room -= count
        if not group:
            return
        start = time.perf_counter()
        logits, _ = self._forward([self._entries(ask, count) for ask, count in group], [1] * len(group))
        self._ops.host(logits)  # a device is done when its results are here
        rows = sum(count for _, count in group)
        self._row_ms = smoothed(self._row_ms, (time.perf_counter() - start) * 1e3 / rows)
        for ask, count in group:
            self._enter(ask, count)

    def _start(self, asks: Sequence[Ask]) -> dict[int, GuessTree]:
        trees = {i: GuessTree(ask) for i, ask in enumerate(asks) if self._ready(ask) and self._due(ask) <= _USUAL}
        if trees:
            roots = list(trees.values())
            due = [self._due(tree.ask) for tree in roots]
            levels = self._levels(roots, due)
            each = list(zip(roots, due, levels, strict=True))
            chains = [lengthened(self._entries(tree.ask, count), deep - 1) for tree, count, deep in each]
            tokens, estimates, hidden = self._guess(roots, chains, levels)
            first = 0
            for tree, count, deep in each:
                self._enter(tree.ask, count)
                its = slice(first, first + deep)
                tree.descend(hidden[its], tokens[its], estimates[its])
                first += deep
        return trees

    def _levels(self, roots: Sequence[GuessTree], due: Sequence[int]) -> list[int]:
        """Of guesses that the first pass makes below each: all but the last level have a slot behind the due rows."""
        one = [1] * len(roots)
        if self._spine is None:
            return one
        most = min(MOST_LEVELS, self.deepest)
        levels = []
        for tree, count in zip(roots, due, strict=True):
            slots = len(tree.ask.blocks) * BLOCK_SIZE - self._states[tree.ask.seq_id].done - count
            levels.append(max(min(most, tree.ask.max_guesses, slots + 1), 1))
        return levels if sum(due) + sum(levels) - len(levels) <= MOST_ROWS else one

    def _guess(
        self, roots: Sequence[GuessTree], chains: Sequence[Rows], levels: Sequence[int]
    ) -> tuple[NDArray[np.int64], Floats, Floats | list[None]]:
        """(tokens [M, k], estimates [M, k], hidden [M, H] or Nones) of each sequence's levels in turn."""
        if self._spine is None or max(levels) == 1:
            logits, hidden = self._forward(chains, levels)
            return *self._rank(logits, [(tree, 0) for tree in roots]), hidden
        self._unmark(chains)
        draws = [draw_after(tree, 0, level) for tree, deep in zip(roots, levels, strict=True) for level in range(deep)]
        return self._spine.grow(chains, levels, draws, self._cache)

    def _due(self, ask: Ask) -> int:
        return len(ask.tokens) - self.behind - self._states[ask.seq_id].done

    def _entries(self, ask: Ask, count: int) -> Rows:
        state, tokens = self._states[ask.seq_id], ask.tokens
        if self.window is not None:
            state.first = max(state.first, (len(tokens) - self.window) // BLOCK_SIZE * BLOCK_SIZE)
        return Rows(
            features=self._features(state, count),
            ids=tokens[state.done + self.behind : state.done + self.behind + count],
            positions=range(state.done, state.done + count),
            first=min(state.first, state.done // BLOCK_SIZE * BLOCK_SIZE),
            start=state.done,
            blocks=ask.blocks,
        )

    def _enter(self, ask: Ask, count: int) -> None:
        state = self._states[ask.seq_id]
        before = max(state.done, state.first)
        self._entered(state, count)
        for block in range(before // BLOCK_SIZE, state.done // BLOCK_SIZE):
            self._marks[ask.blocks[block]] = state.mark(ask.tokens, block)

    def _holds(self, ask: Ask, state: State, block: int) -> bool:
        """Whether the sequence's block holds its entries already, as one of a shared prefix may."""
        return self._marks.get(ask.blocks[block]) == state.mark(ask.tokens, block)

    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        batch = [self._guessed(tree, [*tree.inside, *best]) for tree, best in chosen]
        logits, hidden = self._forward(batch, [len(best) for _, best in chosen])
        nodes = [(tree, node) for tree, best in chosen for node in best]
        tokens, estimates = self._rank(logits, nodes)
        for i, (tree, node) in enumerate(nodes):
            tree.look_into(node, hidden[i], tokens[i], estimates[i])

    def _room(self, tree: GuessTree) -> int:
        slots = len(tree.ask.blocks) * BLOCK_SIZE - self._states[tree.ask.seq_id].done - len(tree.inside)
        return min(self.beam, slots)

    def _guessed(self, tree: GuessTree, nodes: Sequence[int]) -> Rows:
        """All nodes looked into, again: they are few, and a row's ancestors must be in its own pass."""
        state = self._states[tree.ask.seq_id]
        index = {node: row for row, node in enumerate(nodes)}
        ancestors: list[int] = []
        for row, node in enumerate(nodes):
            above = index.get(tree.parents[node])
            ancestors.append(1 << row | (ancestors[above] if above is not None else 0))
        features = [passed for node in nodes if (passed := tree.passed[tree.parents[node]]) is not None]
        return Rows(
            features=np.stack(features) if features else None,
            ids=[tree.tokens[node] for node in nodes],
            positions=[tree.position(node) - self.behind for node in nodes],
            first=state.first,
            start=state.done,
            blocks=tree.ask.blocks,
            ancestors=ancestors,
        )

    def _forward(self, batch: Sequence[Rows], sampled: Sequence[int]) -> tuple[Activation, Floats | list[None]]:
        """(logits [M, N], hidden [M, H] or Nones), the second to keep."""
        self._unmark(batch)
        logits, hidden = self._model.forward(batch_of(batch, sampled), self._cache)[:2]
        if self.reads_hidden:
            return logits, self._ops.host(hidden).copy()  # the next pass writes where this one did
        return logits, [None] * sum(sampled)

    def _unmark(self, batch: Sequence[Rows]) -> None:
        """The blocks of these rows are written to."""
        for rows in batch:
            for block in rows.blocks[rows.start // BLOCK_SIZE : (rows.start + len(rows.ids) - 1) // BLOCK_SIZE + 1]:
                self._marks.pop(block, None)

    def _rank(self, logits: Activation, nodes: Sequence[tuple[GuessTree, int]]) -> tuple[NDArray[np.int64], Floats]:
        return ranked(self._ops, logits, self._model.vocabulary, nodes)
