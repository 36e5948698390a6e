"""Grammars that replies must follow, compiled and advanced by `llguidance`: a lexer of derivatives and an Earley parser
over the trie of the vocabulary (Moskal, Musuvathi, Kıcıman, github.com/guidance-ai/llguidance)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from paceline.engine.errors import GrammarError, RequestError
from paceline.engine.grammar import Grammar

T = TypeVar("T")

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    from .tokenizer import Tokenizer

MAX_GRAMMAR_CHARS = 30_000  # the library is quadratic in some expressions: the slowest found takes 6 s at that size
_KEPT = 32  # compiled grammars
_LEXER_STATES = 50_000  # of one grammar, for all replies that follow it, and as many for guesses: 1 to 2 kB each
_LEXER_FUEL = 300_000  # for its beginning
_GUESSES_FUEL = 3_000_000  # of the lexer that judges guesses, as long as it lives: some 200 ms
# Of the parser, for one mask: everybody's step waits for it. At the library's own 50,000 an ambiguous grammar was seen
# to take 370 ms, at this 25 ms; an object with 400 properties that may all be missing needs more than 10,000.
_STEP_ITEMS = 20_000
# The library follows rules and references that name one another by recursion, 3 to 10 kB each, and nothing ends that
# but the stack: 3,000 rules in a row end a process whose threads have 8 MB. As many as fit take a tenth of this.
_STACK = 256 << 20
_BROKEN = (
    "The reply's grammar grew too complex to be followed any further ({reason}); "
    "simplify the schema, expression or grammar and send the request again."
)


class Grammars:
    """Compiles grammars over one vocabulary, and keeps the ones used last. May be used from any thread.

    vocab_size: of the model, which may have ids that no token of the tokenizer bears: they never come.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._one_at_a_time = threading.Lock()
        self._books = threading.Lock()  # held for moments, of what is kept
        self._kept: dict[str, _Compiled] = {}  # the one used last comes last

    def compile(self, lark: str, param: str) -> Grammar:
        """A grammar from llguidance's dialect of Lark, beginning at `start`; takes milliseconds, or seconds.

        The name of a special token in angle brackets, as in `start: <|name|> /.*/`, stands for that token; text never
        matches one. Raises RequestError (code `invalid_grammar`, or `unsupported` where the model has no end token),
        naming `param`.
        """
        if not self._tokenizer.eos_ids:
            raise RequestError(
                f"{param} cannot be followed: this model has no token that ends a reply; leave it out.",
                param=param,
                code="unsupported",
            )
        if len(lark) > MAX_GRAMMAR_CHARS:
            raise RequestError(
                f"{param} makes a grammar of {len(lark)} characters, and at most {MAX_GRAMMAR_CHARS} can be followed; "
                "simplify it.",
                param=param,
                code="invalid_grammar",
            )
        try:
            with self._one_at_a_time:
                return self.find(lark) or self._keep(lark, _on_deep_stack(lambda: self._compile(lark)))
        except GrammarError as error:
            raise RequestError(
                f"{param} cannot be followed: {error}; correct it and send the request again.",
                param=param,
                code="invalid_grammar",
            ) from None

    def find(self, lark: str) -> _Compiled | None:
        """One that is compiled already: at once, whatever is being compiled meanwhile. One whose lexer has met its
        limit is not found any more: it would refuse whatever comes, for ever."""
        with self._books:
            grammar = self._kept.pop(lark, None)
            if grammar is None or grammar.worn:
                return None
            self._kept[lark] = grammar
            return grammar

    def _keep(self, lark: str, grammar: _Compiled) -> _Compiled:
        with self._books:
            self._kept[lark] = grammar
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return grammar

    def _compile(self, lark: str) -> _Compiled:
        from llguidance import LLParserLimits  # here, as it takes a tenth of a second

        limits = LLParserLimits(
            max_lexer_states=_LEXER_STATES,
            initial_lexer_fuel=_LEXER_FUEL,
            step_max_items=_STEP_ITEMS,
            verbose_errors=False,
        )
        guesses = LLParserLimits(
            max_lexer_states=_LEXER_STATES,
            initial_lexer_fuel=_LEXER_FUEL,
            step_lexer_fuel=_GUESSES_FUEL,  # a mask gives it, and guesses never ask for another than the first
            step_max_items=_STEP_ITEMS,
            verbose_errors=False,
        )
        return _Compiled(self._at_start(lark, limits), self._at_start(lark, guesses), self._vocab_size)

    def _at_start(self, lark: str, limits: LLParserLimits) -> LLMatcher:
        """With a lexer of its own. Raises GrammarError."""
        from llguidance import LLMatcher

        matcher = LLMatcher(self._vocabulary, lark, log_level=0, limits=limits)
        if not matcher.is_error():
            matcher.compute_bitmask()  # some mistakes show only here
        if matcher.is_error():
            raise GrammarError(_reason(matcher))
        return matcher

    @cached_property
    def _vocabulary(self) -> LLTokenizer:
        """Takes a second for a large vocabulary."""
        from llguidance import LLTokenizer, TokenizerWrapper

        wrapped = TokenizerWrapper(_Spelling(self._tokenizer, self._vocab_size))
        return LLTokenizer(wrapped, eos_token=list(self._tokenizer.eos_ids))


class _Spelling:
    """The vocabulary as llguidance asks for it. Its own reader of tokenizer.json takes every added token in angle
    brackets for a special one, so that a text such as <think> is forced to a token that is then refused."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        names = {id_: name.encode() for name, id_ in tokenizer.special_tokens.items()}
        self.tokens = [names.get(id_) or tokenizer.token_bytes(id_) for id_ in range(vocab_size)]
        self.special_token_ids = sorted(names)
        self.eos_token_id = tokenizer.eos_ids[0]
        self._ids = {token: id_ for id_, token in enumerate(self.tokens) if token and id_ not in self.special_token_ids}
        self._longest = max(map(len, self._ids))

    def __call__(self, text: bytes) -> list[int]:
        """Tokens that spell `text`, as the model would write them where that can be told."""
        for before in ("", "\n"):  # some vocabularies put a space before whatever begins a text
            ids = self._tokenizer.encode(before + text.decode(errors="replace"))
            spelled = [self.tokens[id_] for id_ in ids]
            while spelled and sum(map(len, spelled)) > len(text):
                del ids[0], spelled[0]
            if b"".join(spelled) == text:
                return ids
        return self._greedy(text)

    def _greedy(self, text: bytes) -> list[int]:
        """The longest token again and again: of a text that the tokenizer would change first, or half a character."""
        ids: list[int] = []
        while text:
            size = next((size for size in range(min(self._longest, len(text)), 0, -1) if text[:size] in self._ids), 0)
            if not size:
                break  # no token begins so: what is spelled so far is all that can be told
            ids.append(self._ids[text[:size]])
            text = text[size:]
        return ids


class _Compiled:
    """Implements `Grammar`. Matchers share a lexer behind a lock, and may ask the tokenizer while they hold it, for
    which they need Python's: two threads could wait for each other.

    Whatever a lexer is asked for counts against its limits, and once it has met one it refuses everything. So guesses
    have a lexer of their own: they take nothing from replies, which go on without guesses where it is used up.
    """

    def __init__(self, start: LLMatcher, guesses: LLMatcher, vocab_size: int) -> None:
        self._start = start
        self._guesses = guesses
        self._vocab_size = vocab_size
        self.worn = False  # a reply could not go on, or guesses cannot be judged any more

    def matcher(self) -> _Matcher:
        return _Matcher(self, self._start.deep_copy(), self._guesses.deep_copy(), self._vocab_size)


class _Matcher:
    """Implements `Matcher`."""

    def __init__(self, grammar: _Compiled, inner: LLMatcher, guesses: LLMatcher, vocab_size: int) -> None:
        self._grammar = grammar
        self._inner = inner
        self._guesses = guesses
        self._untold: list[int] = []  # tokens that have come since guesses were asked about
        self._words = -(-vocab_size // 32)
        self._forced: list[int] | None = None  # None: not asked since the last token

    def mask(self) -> NDArray[np.uint32]:
        mask = np.zeros(self._words, np.uint32)
        self._inner.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        self._check()
        return mask

    def fits(self, tokens: Sequence[int]) -> int:
        # Other spellings of what is forced are refused by the mask, and by nothing else.
        for count, (token, only) in enumerate(zip(tokens, self.forced(), strict=False)):
            if token != only:
                return count
        fitting = self._guesses.validate_tokens(list(tokens))
        self._grammar.worn |= self._guesses.is_error()
        return fitting

    def advance(self, tokens: Sequence[int]) -> None:
        if tokens:
            self._forced = None
            self._untold += tokens
            if not self._inner.consume_tokens(list(tokens)):
                self._check()
                raise GrammarError(_BROKEN.format(reason="it refused a token of its own"))

    def forced(self) -> Sequence[int]:
        if self._forced is None:
            self._guesses.consume_tokens(self._untold)
            self._untold = []
            self._forced = self._guesses.compute_ff_tokens()
            self._grammar.worn |= self._guesses.is_error()
        return self._forced

    def _check(self) -> None:
        if self._inner.is_error():
            self._grammar.worn = True
            raise GrammarError(_BROKEN.format(reason=_reason(self._inner)))


def _on_deep_stack(work: Callable[[], T]) -> T:
    """work(), on a thread of its own whose stack is as deep as it needs."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # for whoever waits
            done.set_exception(error)

    thread = threading.Thread(target=run, name="paceline-grammar")
    before = threading.stack_size(_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    return done.result()


def _reason(matcher: LLMatcher) -> str:
    """The library's own words, without the place in a text that the client has not written and the picture of it."""
    error = re.sub(r"\s*<non-verbose/>", "", matcher.get_error())
    if error.startswith("NoExtension"):  # the name of a state, for people who know the library
        return "nothing fits it"
    if error.startswith("lexer error"):  # said of the library's own parts
        return "its expressions need too many states"
    if "limits." in error:  # names settings that a client has not
        return "it is too complex"
    text = re.sub(r"^(at )?\d+\(\d+\): ", "", error)
    lines = [line.strip() for line in re.split(r"\n\s*\d+ \| ", text)[0].splitlines()]
    return " ".join(line for line in lines if line.strip("^ "))[:300].rstrip(". ")
