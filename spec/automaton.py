"""A suffix automaton: every stretch of a text, findable in one step per token, built while the text grows.

Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985.
A state stands for the stretches that end at the same places; at most two states and three transitions per token.
"""

from __future__ import annotations

from collections.abc import Iterable

ROOT = 0  # the state of the empty stretch
_COUNTED = 32  # states above a new one whose counts it raises: text that goes round has them without end


class SuffixAutomaton:
    """Append tokens at O(1) amortised each, some 2 µs; the lists are there to be read, by state.

    after: token -> state of the longer stretch. length: tokens of the longest stretch of a state. link: state of the
    longest suffix that also ends elsewhere, -1 for the root. count: how often its stretches occur; where over 32 states
    end at one place, as in text that goes round, the shortest are counted less often.
    """

    __slots__ = ("after", "count", "length", "link", "whole")

    def __init__(self) -> None:
        self.after: list[dict[int, int]] = [{}]
        self.length = [0]
        self.link = [-1]
        self.count = [0]
        self.whole = ROOT  # the state of the whole text

    @property
    def size(self) -> int:
        """Tokens of the text."""
        return self.length[self.whole]

    def extend(self, tokens: Iterable[int]) -> None:
        after, length, link, count = self.after, self.length, self.link, self.count
        whole = self.whole
        for token in tokens:
            state, new = whole, len(length)
            length.append(length[whole] + 1)
            after.append({})
            link.append(ROOT)
            count.append(0)
            while state >= 0 and token not in after[state]:
                after[state][token] = new
                state = link[state]
            if state >= 0:
                link[new] = self._end_of(state, token)
            whole = state = new
            for _ in range(_COUNTED):
                if state <= ROOT:
                    break
                count[state] += 1
                state = link[state]
        self.whole = whole

    def _end_of(self, state: int, token: int) -> int:
        """The state whose longest stretch is that of `state` and `token`; split off if longer ones share it so far."""
        after, length, link = self.after, self.length, self.link
        target = after[state][token]
        if length[target] == length[state] + 1:
            return target
        split = len(length)
        length.append(length[state] + 1)
        after.append(after[target].copy())
        link.append(link[target])
        self.count.append(self.count[target])
        link[target] = split
        while state >= 0 and after[state].get(token) == target:
            after[state][token] = split
            state = link[state]
        return split


class Cursor:
    """The longest suffix of a text being read that occurs in an automaton: `length` tokens long, found at `state`.

    Reading a token takes O(1) amortised. The automaton may grow meanwhile.
    """

    __slots__ = ("automaton", "length", "state")

    def __init__(self, automaton: SuffixAutomaton) -> None:
        self.automaton = automaton
        self.state, self.length = ROOT, 0

    def read(self, tokens: Iterable[int]) -> None:
        after, longest, link = self.automaton.after, self.automaton.length, self.automaton.link
        state, size = self.settle(), self.length
        for token in tokens:
            while state > ROOT and token not in after[state]:
                state = link[state]
                size = longest[state]
            if (found := after[state].get(token)) is not None:
                state, size = found, size + 1
        self.state, self.length = state, size

    def settle(self) -> int:
        """The state, after the automaton may have grown: shorter stretches of a state can move to one of their own."""
        longest, link = self.automaton.length, self.automaton.link
        while self.state > ROOT and longest[link[self.state]] >= self.length:
            self.state = link[self.state]
        return self.state
