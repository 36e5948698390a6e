"""Earlier replies, kept by key for later ones to be drafted from: bounded, the oldest forgotten first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

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

    def begin(self, size: int) -> None:
        """Make room for another reply of so many tokens, at most half the room."""
        if self.automata[-1].size + size > self._half:
            self.automata = [self.automata[-1], SuffixAutomaton()]

    def extend(self, tokens: Iterable[int]) -> None:
        """More tokens of the reply begun last."""
        self.automata[-1].extend(tokens)


class ReplyStore:
    """Replies by key; nothing is ever found under another key. Indexing waits for `work`, which takes it in portions.

    room: tokens of one key. total: tokens of all keys; those not used for longest are dropped first.
    """

    def __init__(self, room: int = 8192, total: int = 65536) -> None:
        self._room, self._total = room, total
        self._by_key: dict[str, Replies] = {}  # the key used last comes last
        self._waiting: deque[tuple[str, Sequence[int]]] = deque()
        self._indexed = 0  # tokens of the first that waits

    def put(self, key: str, tokens: Sequence[int]) -> None:
        """Keep a reply; of one that is too long, as much of its beginning as fits. Where many wait to be indexed, the
        oldest are dropped.
        """
        self._waiting.append((key, (START, *tokens[: self._room // 2 - 1])))
        while sum(len(reply) for _, reply in self._waiting) > self._total:
            self._waiting.popleft()
            self._indexed = 0

    def work(self, most: int) -> int:
        """Index up to `most` tokens, at least 1, of the replies that wait; returns how many, 0 when there is none."""
        if not self._waiting:
            return 0
        key, reply = self._waiting[0]
        replies = self._by_key.pop(key, None) or Replies(self._room)
        self._by_key[key] = replies
        first, stop = self._indexed, min(self._indexed + most, len(reply))
        if first == 0:
            replies.begin(len(reply))
        replies.extend(reply[first:stop])
        self._indexed = stop
        if stop == len(reply):
            self._waiting.popleft()
            self._indexed = 0
        while len(self._by_key) > 1 and sum(each.size for each in self._by_key.values()) > self._total:
            del self._by_key[next(iter(self._by_key))]
        return stop - first

    def find(self, key: str) -> Iterable[SuffixAutomaton]:
        """The automata of a key, oldest first."""
        replies = self._by_key.pop(key, None)
        if replies is None:
            return ()
        self._by_key[key] = replies
        return replies.automata
