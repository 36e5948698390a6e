"""Grammars that replies must follow, compiled and advanced by `llguidance`: a lexer of derivatives and an Earley parser
over the trie of the vocabulary (Moskal, Musuvathi, Kıcıman, github.com/guidance-ai/llguidance)."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
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
    from llguidance import LLMatcher, LLTokenizer

    from .tokenizer import Tokenizer

MAX_GRAMMAR_CHARS = 30_000  # the library is quadratic in some expressions: the slowest found takes 3 s at that size
_KEPT = 32  # compiled grammars
_LEXER_STATES = 50_000  # of one grammar, for all replies that follow it: 1 to 2 kB each
_LEXER_FUEL = 300_000  # for its beginning
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
        self._looking = threading.Lock()  # held for a moment alone
        self._compiled: OrderedDict[str, Grammar] = OrderedDict()  # the one used last stands last

    def find(self, lark: str) -> Grammar | None:
        """One that was compiled and is kept: at once, whatever is being compiled meanwhile."""
        with self._looking:
            if (found := self._compiled.get(lark)) is not None:
                self._compiled.move_to_end(lark)
            return found

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

    def _keep(self, lark: str, grammar: Grammar) -> Grammar:
        with self._looking:
            self._compiled[lark] = grammar
            if len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        return grammar

    def _compile(self, lark: str) -> Grammar:
        from llguidance import LLMatcher, LLParserLimits  # here, as it takes a tenth of a second

        limits = LLParserLimits(
            max_lexer_states=_LEXER_STATES,
            initial_lexer_fuel=_LEXER_FUEL,
            step_max_items=_STEP_ITEMS,
            verbose_errors=False,
        )
        matcher = LLMatcher(self._vocabulary, lark, log_level=0, limits=limits)
        if not matcher.is_error():
            matcher.compute_bitmask()  # some mistakes show only here
        if matcher.is_error():
            raise GrammarError(_reason(matcher))
        return _Compiled(matcher, self._vocab_size)

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
    which they need Python's: two threads could wait for each other."""

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        self._start = matcher
        self._vocab_size = vocab_size

    def matcher(self) -> _Matcher:
        return _Matcher(self._start.deep_copy(), self._vocab_size)


class _Matcher:
    """Implements `Matcher`."""

    def __init__(self, inner: LLMatcher, vocab_size: int) -> None:
        self._inner = inner
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
        return self._inner.validate_tokens(list(tokens))

    def advance(self, tokens: Sequence[int]) -> None:
        if tokens:
            self._forced = None
            if not self._inner.consume_tokens(list(tokens)):
                self._check()
                raise GrammarError(_BROKEN.format(reason="it refused a token of its own"))

    def forced(self) -> Sequence[int]:
        if self._forced is None:
            self._forced = self._inner.compute_ff_tokens()
        return self._forced

    def _check(self) -> None:
        if self._inner.is_error():
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
    if "limits." in error:  # names settings that a client has not
        return "it is too complex"
    text = re.sub(r"^(at )?\d+\(\d+\): ", "", error)
    lines = [line.strip() for line in re.split(r"\n\s*\d+ \| ", text)[0].splitlines()]
    return " ".join(line for line in lines if line.strip("^ "))[:300].rstrip(". ")
