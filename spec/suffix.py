"""The suffix drafter: how the longest stretch that ends here went on before, in this text and in others that are known.

After SuffixDecoding (Oliaro et al., arXiv 2411.04975): continuations are counted, and the likeliest nodes of the tree
they make are proposed. Three sources: the sequence's own prompt and output; the reply the client predicted; earlier
replies of the same key. Contexts of different length and source are blended as in PPM (Cleary, Witten 1984): each gives
its own counts and, in proportion to its doubt, what the shorter ones say.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from .automaton import ROOT, Cursor, SuffixAutomaton
from .proposer import Ask, Proposal, Verdict
from .replies import START, ReplyStore

_PORTION = 1024  # tokens indexed per step, for all sequences together: 2 to 3 ms
_LEVELS = 2  # contexts of one source: the longest that matches, and the next shorter one that occurs elsewhere too
_BRANCHES = 8  # continuations of one context that may be guessed, the most frequent ones
_PREDICTED = 8  # tokens a match in the client's prediction counts for more
_LEAST = 0.05  # a likelihood no row is worth
_REREAD = 64  # tokens of the output a new source is matched with

_Context = tuple[int, SuffixAutomaton, int]  # tokens matched, where, state


@dataclass(slots=True)
class _Text:
    """One sequence and what its end matches."""

    ask: Ask  # the latest one: its token list grows by itself
    own: SuffixAutomaton = field(default_factory=SuffixAutomaton)
    predicted: Cursor | None = None
    earlier: list[Cursor] = field(default_factory=list)
    read: int = 0  # tokens the cursors have seen

    def index(self, most: int) -> int:
        """Take in up to `most` tokens that are new, of the prediction first; returns how many."""
        taken = 0
        if self.ask.prediction:
            if self.predicted is None:
                text = SuffixAutomaton()
                text.extend((START,))
                self.predicted = self._cursor(text)
            taken = _extend(self.predicted.automaton, self.ask.prediction, most, before=1)
            if taken:  # what was read before may stand in what is new
                self.predicted = self._cursor(self.predicted.automaton)
        return taken + _extend(self.own, self.ask.tokens, most - taken)

    def match(self, automata: Sequence[SuffixAutomaton]) -> list[_Context]:
        """What the end of the sequence matches, shortest first; automata: of earlier replies."""
        ask = self.ask
        if automata or self.earlier:
            known = {id(cursor.automaton): cursor for cursor in self.earlier}
            self.earlier = [known.get(id(automaton)) or self._cursor(automaton) for automaton in automata]
        new = ask.tokens[max(self.read, ask.prompt_length) :]
        self.read = len(ask.tokens)
        contexts: list[_Context] = []
        for cursor in (self.predicted, *self.earlier):
            if cursor is not None:
                cursor.read(new)
                cursor.settle()
                bonus = _PREDICTED if cursor is self.predicted else 0
                contexts += _levels(cursor.automaton, cursor.state, cursor.length, bonus)
        own = self.own
        if own.size == len(ask.tokens) and own.size:
            repeated = own.link[own.whole]  # the longest suffix that was there before
            contexts += _levels(own, repeated, own.length[repeated], 0)
        contexts.sort(key=lambda context: context[0])
        return contexts

    def _cursor(self, automaton: SuffixAutomaton) -> Cursor:
        """A cursor that has read as much as the others."""
        cursor, ask = Cursor(automaton), self.ask
        first = max(ask.prompt_length, self.read - _REREAD)
        if first == ask.prompt_length:
            cursor.read((START,))
        cursor.read(ask.tokens[first : self.read])
        return cursor


def _extend(automaton: SuffixAutomaton, tokens: Sequence[int], most: int, before: int = 0) -> int:
    """Append up to `most` of the tokens it lacks, `before` of its own standing before them; returns how many."""
    first = automaton.size - before
    stop = min(len(tokens), first + most)
    automaton.extend(tokens[first:stop])  # a slice takes as long as what it holds, whatever stands before it
    return stop - first


def _levels(automaton: SuffixAutomaton, state: int, length: int, bonus: int) -> list[_Context]:
    found: list[_Context] = []
    while state > ROOT and len(found) < _LEVELS:
        if automaton.after[state]:
            found.append((length + bonus, automaton, state))
        state = automaton.link[state]
        length = automaton.length[state]
    return found


def _doubt(matched: int) -> float:
    """Weight of "something else" after a match of so many tokens, in occurrences."""
    return 2.0 / matched + 0.1


def _estimates(contexts: Sequence[_Context]) -> dict[int, float]:
    """How likely each token comes next. contexts: shortest first."""
    likely: dict[int, float] = {}
    for matched, automaton, state in contexts:
        counts = automaton.count
        seen = [(token, counts[longer]) for token, longer in automaton.after[state].items() if token != START]
        # Not the state's own count, which counts an end of the text too, and stretches of text that goes round less.
        total = sum([count for _, count in seen])
        if len(seen) > _BRANCHES:
            seen = heapq.nlargest(_BRANCHES, seen, key=itemgetter(1))  # of equal ones the first stays first
        doubt = _doubt(matched)
        scale = 1.0 / (total + doubt)
        for token in likely:
            likely[token] *= doubt * scale
        for token, count in seen:
            likely[token] = likely.get(token, 0.0) + count * scale
    return likely


def _follow(contexts: Sequence[_Context], token: int) -> list[_Context]:
    """The contexts one token further on. Where a text ends, it is expected to go on as it did from a shorter match."""
    found: list[_Context] = []
    for matched, automaton, state in contexts:
        longer = automaton.after[state].get(token)
        if longer is None:
            continue
        while longer > ROOT and not automaton.after[longer]:
            longer = automaton.link[longer]
        if longer > ROOT and not (found and found[-1][2] == longer and found[-1][1] is automaton):
            found.append((matched + 1, automaton, longer))
    return found


class Suffix:
    """Drafts from repetition; some 20 to 80 µs a sequence and step, however long the text."""

    name = "suffix"
    needs_hidden = False

    def __init__(self, store: ReplyStore | None = None) -> None:
        self._store = store or ReplyStore()
        self._texts: dict[str, _Text] = {}

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        left = _PORTION
        proposals = []
        for ask in asks:
            text = self._texts.get(ask.seq_id)
            if text is None:
                text = self._texts[ask.seq_id] = _Text(ask)
            text.ask = ask
            left -= text.index(left)
            automata = tuple(self._store.find(ask.reuse_key)) if ask.reuse_key else ()
            proposals.append(self._likeliest(text.match(automata), ask.max_guesses))
        while left > 0 and (indexed := self._store.work(left)):
            left -= indexed
        return proposals

    def _likeliest(self, contexts: list[_Context], most: int) -> Proposal:
        """The `most` likeliest nodes of the tree of continuations, best first."""
        tokens: list[int] = []
        parents: list[int] = []
        estimates: list[float] = []
        # Entries: (-likelihood, order of arrival, parent guess, token, estimate, contexts of the parent)
        heap: list[tuple[float, int, int, int, float, list[_Context]]] = []
        guess, likelihood, arrival = -1, 1.0, 0
        while len(tokens) < most:
            for token, estimate in _estimates(contexts).items():
                if likelihood * estimate >= _LEAST:
                    arrival += 1
                    heapq.heappush(heap, (-likelihood * estimate, arrival, guess, token, estimate, contexts))
            if not heap:
                break
            negative, _, parent, token, estimate, above = heapq.heappop(heap)
            guess, likelihood, contexts = len(tokens), -negative, _follow(above, token)
            tokens.append(token)
            parents.append(parent)
            estimates.append(estimate)
        return Proposal(self.name, tuple(tokens), tuple(parents), tuple(estimates))

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        pass  # the next ask carries the tokens

    def forget(self, seq_id: str) -> None:
        text = self._texts.pop(seq_id, None)
        if text is not None and text.ask.reuse_key:
            self._store.put(text.ask.reuse_key, tuple(text.ask.tokens[text.ask.prompt_length :]))
