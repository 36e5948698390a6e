"""Earlier replies, kept by key for later ones to be drafted from: bounded, the oldest forgotten first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from .automaton import SuffixAutomaton

START = -1  # stands before each reply, so that beginnings match beginnings; no token has this id


class Replies:
    """Replies of one key, in two automata: a full one takes the place of the other, whose replies are forgotten.

    room: tokens of both together, at least 2.
    """

    def __init__(self, room: int) -> None:
        self.automata = [SuffixAutomaton()]
        self._half = room // 2

    @property
    def size(self) -> int:
        return sum(automaton.size for automaton in self.automata)

    def add(self, tokens: Sequence[int]) -> None:
        """Of a reply that is too long, as much of its beginning as fits."""
        taken = min(len(tokens) + 1, self._half)
        if self.automata[-1].size + taken > self._half:
            self.automata = [self.automata[-1], SuffixAutomaton()]
        self.automata[-1].extend([START, *islice(tokens, taken - 1)])


class ReplyStore:
    """Replies by key; nothing is ever found under another key. Indexing waits for `work`, which takes it in portions.

    room: tokens of one key. total: tokens of all keys; those not used for longest are dropped first.
    """

    def __init__(self, room: int = 8192, total: int = 65536) -> None:
        self._room, self._total = room, total
        self._by_key: dict[str, Replies] = {}  # the key used last comes last
        self._waiting: deque[tuple[str, Sequence[int]]] = deque()

    def put(self, key: str, tokens: Sequence[int]) -> None:
        """Keep a reply. Where many wait to be indexed, the oldest are dropped."""
        self._waiting.append((key, tokens))
        while sum(len(reply) for _, reply in self._waiting) > self._total:
            self._waiting.popleft()

    def work(self) -> int:
        """Index one of the replies that wait; returns its tokens, 0 when there is none."""
        if not self._waiting:
            return 0
        key, tokens = self._waiting.popleft()
        replies = self._by_key.pop(key, None) or Replies(self._room)
        replies.add(tokens)
        self._by_key[key] = replies
        while len(self._by_key) > 1 and sum(each.size for each in self._by_key.values()) > self._total:
            del self._by_key[next(iter(self._by_key))]
        return len(tokens) + 1

    def find(self, key: str) -> Iterable[SuffixAutomaton]:
        """The automata of a key, oldest first."""
        replies = self._by_key.pop(key, None)
        if replies is None:
            return ()
        self._by_key[key] = replies
        return replies.automata
