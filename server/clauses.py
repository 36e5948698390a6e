"""Where clauses and sentences end in a text that is still being written. Decided character by character."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

# Marks that end a clause wherever they stand: at once while no quote is open, which could close behind them
_AT_ONCE = frozenset("。｡，；：।")
# Marks that need nothing behind them either, but come in rows
_FREE = _AT_ONCE | frozenset("！？—")
# Marks that end a clause only before a space: 3.14, 10:30, 1,000 and a.b go on
_BOUND = frozenset(".!?…,;:؟،؛")
_MARKS = _FREE | _BOUND
_PAIRS = dict(zip('「『（《“【〈"', '」』）》”】〉"', strict=True))
_CLOSERS = frozenset("\"'”’)]}»」』）》】〉*_`")  # Markdown's too: **Yes.** No.

# Before a full stop, in lower case: never an end, as a name or more of the sentence follows
_TITLES = (
    "dr mr mrs ms prof st rev hon gen col capt lt sgt fr sr sra dra hr vs cf fig figs no nr nos vol pp ca bzw "
    "e.g i.e z.b d.h u.a p.ex"
)
# Before a full stop: an end unless what follows begins with a small letter
_SHORT = "etc inc ltd co corp jr al approx dept est min max usw resp bspw"
_NEVER, _SOMETIMES = frozenset(_TITLES.split()), frozenset(_SHORT.split())
_LONGEST_WORD = 24  # characters of the last word that are looked at
_ORDINAL_DIGITS = 2  # "1. First", "am 3. Mai"; a year ends a sentence


@dataclass(frozen=True, slots=True)
class Clause:
    """text[start:end] of the reply's text, in code points."""

    start: int
    end: int
    text: str


class _State(Enum):
    WORDS = auto()
    MARKED = auto()  # behind marks: more of them may follow, or quotes that close
    DOUBTFUL = auto()  # behind the full stop of an abbreviation that often ends a sentence, and a space


class Clauses:
    """Clauses follow each other without gaps, spaces in front; a rest without a letter or digit is none.

    A boundary is told as soon as nothing that may follow could move it: at once for 。 and at the end of a line, with
    the space behind other marks, with the next word behind `etc.`. The rules are those of writing, not of grammar, and
    can be wrong; but how the text is cut into pieces never changes what they say.
    """

    def __init__(self) -> None:
        self._state = _State.WORDS
        self._buffer: list[str] = []  # the text from `_start` on
        self._start = 0
        self._end = 0  # where the clause ends if it does; an index of the buffer
        self._free = False  # the marks there need no space behind them
        self._word = ""  # the end of the last word, with its marks
        self._spoken = False  # the buffer has a letter or a digit
        self._open: list[str] = []  # what closes the quotes that are open

    def push(self, text: str) -> list[Clause]:
        """The clauses whose end became certain, in order."""
        return [clause for letter in text for clause in self._read(letter)]

    def close(self) -> list[Clause]:
        """The text ends here."""
        return self._cut(len(self._buffer))

    def _read(self, letter: str) -> list[Clause]:
        clauses = self._decide(letter)
        self._buffer.append(letter)
        self._word = "" if letter.isspace() else (self._word + letter)[-_LONGEST_WORD:]
        self._spoken = self._spoken or letter.isalnum()
        self._quote(letter)
        if self._spoken and letter in _MARKS:
            self._free = letter in _FREE or (self._free and self._state is _State.MARKED)
            self._state, self._end = _State.MARKED, len(self._buffer)
            if letter in _AT_ONCE and not self._open:
                clauses += self._cut(self._end)
        return clauses

    def _decide(self, letter: str) -> list[Clause]:
        """What `letter` says of the marks before it."""
        if letter == "\n":
            return self._cut(len(self._buffer) if self._state is _State.WORDS else self._end)
        if self._state is _State.MARKED:
            return self._decide_marked(letter)
        if self._state is _State.DOUBTFUL and letter.isalnum():
            if not letter.islower():
                return self._cut(self._end)
            self._state = _State.WORDS
        return []

    def _decide_marked(self, letter: str) -> list[Clause]:
        if letter in _CLOSERS:
            self._end = len(self._buffer) + 1
            return []
        if letter in _MARKS:
            return []
        self._state = _State.WORDS
        if not letter.isspace():
            return self._cut(self._end) if self._free else []
        stem = self._word.lower().lstrip("\"'([{“‘«*_`").rstrip(".,")
        if self._word.endswith((".", ".,")) and not self._word.endswith(".."):
            if stem in _NEVER or (len(stem) == 1 and stem.isalpha()):
                return []
            if stem.isdigit() and len(stem) <= _ORDINAL_DIGITS:
                return []
            if stem in _SOMETIMES or all(len(part) == 1 for part in stem.split(".")):
                self._state = _State.DOUBTFUL
                return []
        return self._cut(self._end)

    def _quote(self, letter: str) -> None:
        if letter == "\n":
            self._open.clear()  # one that is never closed ends with its line
        elif self._open and letter == self._open[-1]:
            self._open.pop()
        elif letter in _PAIRS:
            self._open.append(_PAIRS[letter])

    def _cut(self, end: int) -> list[Clause]:
        self._state = _State.WORDS
        if not self._spoken:
            return []
        clause = Clause(self._start, self._start + end, "".join(self._buffer[:end]))
        self._buffer = self._buffer[end:]
        self._start += end
        self._spoken = any(letter.isalnum() for letter in self._buffer)
        return [clause]
