"""Drafting with the feature-conditioned layer: catch up with what was committed, then grow a tree best first.

Its keys and values live in a cache of one layer whose slots are the target's: block tables serve both. What stands in a
slot only decides how good guesses are, never what the text is.

     entries of a sequence whose tokens are 0 … n-1, token n-1 pending:
     [first ......... done)   [done ........ n-1)      [n-1 …)
      true hidden states       arrived, not run yet     guessed nodes, rewritten once the truth is known
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.sample import Draw

from .draft_batch import Rows, batch_of
from .eagle import EagleModel
from .proposer import Ask, Proposal, Verdict

Floats = NDArray[np.float32]

_WINDOW = 512  # positions it looks back on: nearly all that helps a guess is near, and drafting stays cheap
_CATCH_UP = 512  # rows of one pass
_SIBLINGS = 4  # guesses kept below a node
_BEAM = 2  # nodes that are looked into per pass
_PASSES = 5  # after the first
_RIGHT = 0.6  # how often one of a node's children is right, about; whether a pass pays depends little on it
_SMOOTH = 0.1  # weight of a new measurement
_USUAL = 16  # rows of a sequence's catch-up in an ordinary step


@dataclass(slots=True)
class _State:
    """One sequence. Entries [first, done) are in the cache; `waiting` holds the hidden states of those after them."""

    first: int
    done: int
    waiting: list[Floats] = field(default_factory=list)
    known: bool = False  # whether valid entries of a shared prefix have been looked for

    @property
    def arrived(self) -> int:
        return sum(map(len, self.waiting))

    def add(self, start: int, features: Floats) -> None:
        """Hidden states of positions start …; the first `_WINDOW` of too many are let go."""
        if start != self.done + self.arrived:
            self.first = self.done = start
            self.waiting.clear()
            self.known = False
        self.waiting.append(features)
        surplus = self.arrived - _WINDOW
        if surplus >= BLOCK_SIZE:
            together = np.concatenate(self.waiting)
            drop = -(-(self.done + surplus) // BLOCK_SIZE) * BLOCK_SIZE - self.done
            self.first = self.done = self.done + drop
            self.known = True
            self.waiting = [together[drop:].copy()]


@dataclass(slots=True)
class _Tree:
    """A sequence's guesses while they grow. Node 0 is the pending token; every other node is a guess."""

    ask: Ask
    state: _State
    tokens: list[int] = field(default_factory=lambda: [-1])
    parents: list[int] = field(default_factory=lambda: [-1])
    depths: list[int] = field(default_factory=lambda: [0])
    estimates: list[float] = field(default_factory=lambda: [1.0])
    likely: list[float] = field(default_factory=lambda: [1.0])  # that the node and all above it are right
    hidden: dict[int, Floats] = field(default_factory=dict)  # node looked into -> [H], what the layer made of it
    inside: list[int] = field(default_factory=list)  # nodes looked into, but for the pending token: rows of a pass

    def look_into(self, node: int, hidden: Floats, tokens: NDArray[np.int64], estimates: Floats) -> None:
        self.hidden[node] = hidden
        for token, estimate in zip(tokens.tolist(), estimates.tolist(), strict=True):
            self.tokens.append(token)
            self.parents.append(node)
            self.depths.append(self.depths[node] + 1)
            self.estimates.append(estimate)
            self.likely.append(self.likely[node] * estimate)

    def best(self, count: int) -> list[int]:
        """The likeliest guesses that were not looked into yet."""
        room = min(count, self.ask.max_guesses - len(self.inside), self._slots - len(self.inside))
        outside = [node for node in range(1, len(self.tokens)) if node not in self.hidden]
        return sorted(outside, key=lambda node: -self.likely[node])[: max(room, 0)]

    @property
    def _slots(self) -> int:
        return len(self.ask.blocks) * BLOCK_SIZE - self.state.done

    def rows(self) -> Rows:
        """All nodes looked into, again: they are few, and a row's ancestors must be in its own pass."""
        index = {node: row for row, node in enumerate(self.inside)}
        ancestors: list[int] = []
        for row, node in enumerate(self.inside):
            above = index.get(self.parents[node])
            ancestors.append(1 << row | (ancestors[above] if above is not None else 0))
        return Rows(
            features=np.stack([self.hidden[self.parents[node]] for node in self.inside]),
            ids=[self.tokens[node] for node in self.inside],
            positions=[self.state.done - 1 + self.depths[node] for node in self.inside],
            first=self.state.first,
            start=self.state.done,
            blocks=self.ask.blocks,
            ancestors=ancestors,
        )

    def proposal(self, source: str) -> Proposal:
        """The likeliest guesses; a parent is never less likely than its child, and comes before it."""
        order = sorted(range(1, len(self.tokens)), key=lambda node: -self.likely[node])[: self.ask.max_guesses]
        place = {node: i for i, node in enumerate(order)} | {0: -1}
        return Proposal(
            source,
            tuple(self.tokens[node] for node in order),
            tuple(place[self.parents[node]] for node in order),
            tuple(self.estimates[node] for node in order),
        )


class EagleDrafter:
    """Guesses with an `EagleModel`.

    cache: one layer, with as many blocks as the target's. index: which of a verdict's features are its own. token_ms:
    what a token costs without this drafter, in milliseconds: another pass must promise more than it takes.
    """

    name = "eagle"
    needs_hidden = True

    def __init__(self, model: EagleModel, cache: Cache, ops: Ops, *, index: int, token_ms: Callable[[], float]) -> None:
        self._model = model
        self._cache = cache
        self._ops = ops
        self._index = index
        self._token_ms = token_ms
        self._states: dict[str, _State] = {}
        self._marks: dict[int, int] = {}  # block -> what its entries were computed for, see `_mark`
        self._ms: dict[int, float] = {}  # asks at once -> milliseconds of `propose`
        self._pass_ms = 0.0

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        if not self._ms:
            return 0.0
        nearest = min(self._ms, key=lambda count: abs(count - len(asks)))
        return self._ms[nearest]

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        start = time.perf_counter()
        proposals = [Proposal(self.name)] * len(asks)
        ready = {i: _Tree(ask, state) for i, ask in enumerate(asks) if (state := self._ready(ask))}
        usual = all(tree.state.arrived <= _USUAL for tree in ready.values())
        self._catch_up(list(ready.values()))
        for _ in range(_PASSES):
            if not self._grow(list(ready.values())):
                break
        for i, tree in ready.items():
            proposals[i] = tree.proposal(self.name)
        if usual and ready:
            ms = (time.perf_counter() - start) * 1e3
            before = self._ms.get(len(asks), ms)
            self._ms[len(asks)] = before + _SMOOTH * (ms - before)
        return proposals

    def _ready(self, ask: Ask) -> _State | None:
        """The sequence's state where all that was committed has arrived."""
        state = self._states.get(ask.seq_id)
        if state is None or state.done + state.arrived != len(ask.tokens) - 1 or not state.waiting:
            return None
        if not state.known:
            state.known = True
            while state.first and self._marks.get(ask.blocks[state.first // BLOCK_SIZE - 1]) == _mark(
                ask.tokens, state.first // BLOCK_SIZE - 1
            ):
                state.first -= BLOCK_SIZE
        return state

    def _catch_up(self, trees: Sequence[_Tree]) -> None:
        """Enter the true hidden states, and guess what follows the pending token."""
        for group in _groups(trees, _CATCH_UP):
            rows = []
            for tree in group:
                ask, state = tree.ask, tree.state
                features = np.concatenate(state.waiting)
                state.first = max(state.first, (len(ask.tokens) - _WINDOW) // BLOCK_SIZE * BLOCK_SIZE)
                rows.append(
                    Rows(
                        features=features,
                        ids=list(ask.tokens[state.done + 1 :]),
                        positions=list(range(state.done, state.done + len(features))),
                        first=min(state.first, state.done),
                        start=state.done,
                        blocks=ask.blocks,
                    )
                )
            logits, hidden = self._forward(batch_of(rows, [1] * len(rows)))
            tokens, estimates = self._rank(logits, [(tree, 1) for tree in group])
            for i, tree in enumerate(group):
                self._enter(tree.ask, tree.state)
                tree.look_into(0, hidden[i], tokens[i], estimates[i])

    def _enter(self, ask: Ask, state: _State) -> None:
        """What waited is in the cache now."""
        before = state.done
        state.done += state.arrived
        state.waiting.clear()
        for index in range(max(before, state.first) // BLOCK_SIZE, state.done // BLOCK_SIZE):
            self._marks[ask.blocks[index]] = _mark(ask.tokens, index)

    def _grow(self, trees: Sequence[_Tree]) -> bool:
        """Look into the likeliest guesses of all sequences with one pass; False where that would not pay."""
        chosen = [(tree, best) for tree in trees if (best := tree.best(_BEAM))]
        promise = _RIGHT * sum(tree.likely[node] for tree, best in chosen for node in best)
        if not chosen or promise * self._token_ms() <= self._pass_ms:
            return False
        start = time.perf_counter()
        for tree, best in chosen:
            tree.inside += best
        logits, hidden = self._forward(batch_of([tree.rows() for tree, _ in chosen], [len(best) for _, best in chosen]))
        new = [(tree, node) for tree, best in chosen for node in best]
        tokens, estimates = self._rank(logits, [(tree, tree.depths[node] + 1) for tree, node in new])
        for i, (tree, node) in enumerate(new):
            tree.look_into(node, hidden[i], tokens[i], estimates[i])
        ms = (time.perf_counter() - start) * 1e3
        self._pass_ms += (_SMOOTH if self._pass_ms else 1.0) * (ms - self._pass_ms)
        return True

    def _forward(self, batch: Batch) -> tuple[Floats, Floats]:
        logits, hidden = self._model.forward(batch, self._cache)[:2]
        return logits, self._ops.host(hidden).copy()  # the next pass writes where this one did

    def _rank(self, logits: Floats, places: Sequence[tuple[_Tree, int]]) -> tuple[NDArray[np.int64], Floats]:
        draws = [Draw(tree.ask.seed, len(tree.ask.tokens) - 1 + depth, tree.ask.temperature) for tree, depth in places]
        return self._ops.rank(logits, self._model.vocabulary, draws, min(_SIBLINGS, len(self._model.vocabulary)))

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            state = self._states.setdefault(verdict.seq_id, _State(verdict.start, verdict.start))
            state.add(verdict.start, verdict.features[self._index])

    def forget(self, seq_id: str) -> None:
        self._states.pop(seq_id, None)


def _mark(tokens: Sequence[int], index: int) -> int:
    """What a full block's entries were computed for. Tokens before the block matter to the entries too, but little."""
    return hash((index, *tokens[index * BLOCK_SIZE : (index + 1) * BLOCK_SIZE]))


def _groups(trees: Sequence[_Tree], most: int) -> Iterator[list[_Tree]]:
    """Trees whose catch-ups have `most` rows together, or one."""
    group: list[_Tree] = []
    rows = 0
    for tree in trees:
        if group and rows + tree.state.arrived > most:
            yield group
            group, rows = [], 0
        group.append(tree)
        rows += tree.state.arrived
    if group:
        yield group
