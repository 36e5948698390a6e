"""Finding stop strings in a text that arrives in pieces (Aho and Corasick 1975): every character is looked at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from paceline.engine.errors import RequestError


class StopStrings:
    """The automaton of a set of stop strings; immutable, shared by any number of searches.

    The match that is complete first wins, so a decision never waits for text to come and never depends on how the text
    is cut into pieces; of several that are complete at the same character the longest wins.
    Memory and time to build are proportional to the characters in `stops`. Raises RequestError for an empty one.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._fail = [0]
        self._match = [0]  # length of the longest stop string that ends in this state
        self._depth = [0]
        for stop in stops:
            self._add(stop)
        self._link()

    def _add(self, stop: str) -> None:
        if not stop:
            raise RequestError("A stop string is empty; leave it out or give it at least one character.", param="stop")
        state = 0
        for letter in stop:
            if letter not in self._next[state]:
                self._next[state][letter] = len(self._next)
                self._next.append({})
                self._fail.append(0)
                self._match.append(0)
                self._depth.append(self._depth[state] + 1)
            state = self._next[state][letter]
        self._match[state] = len(stop)

    def _link(self) -> None:
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            for letter, child in self._next[state].items():
                self._fail[child] = self.step(self._fail[state], letter)
                self._match[child] = self._match[child] or self._match[self._fail[child]]
                queue.append(child)

    def step(self, state: int, letter: str) -> int:
        """The state after one more character; 0 is the start."""
        while state and letter not in self._next[state]:
            state = self._fail[state]
        return self._next[state].get(letter, 0)

    def scan(self, state: int, text: str) -> tuple[int, int, int]:
        """Read `text` up to the first complete match: (state, characters read, length of the match or 0)."""
        for read, letter in enumerate(text, 1):
            state = self.step(state, letter)
            if self._match[state]:
                return state, read, self._match[state]
        return state, len(text), 0

    def pending(self, state: int) -> int:
        """How many of the last characters may be the beginning of a match."""
        return self._depth[state]
