"""One reply in the making."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from paceline.kernels.paging import BLOCK_SIZE

from .grammar import Matcher
from .request import Finish, Request


@dataclass(eq=False, slots=True)
class Sequence:
    """Mutable state of a request; touched by the engine thread only.

        [0 ......... num_computed)  [num_computed ......... len(tokens))
         keys and values valid       known tokens still to compute; one when decoding

    `blocks` covers at least the computed slots; it only grows within a step and is cut back when one commits.
    """

    request: Request
    arrival: int  # order of submission: the larger, the younger
    tokens: list[int] = field(init=False)
    prompt_length: int = field(init=False)  # the first of them, which are the prompt or its part worth computing
    num_computed: int = 0
    blocks: list[int] = field(default_factory=list)
    published: list[bytes] = field(default_factory=list)  # chain keys of its leading full blocks, as published
    cached_tokens: int | None = None  # prompt tokens found in the prefix cache at first admission
    submitted: float = field(default_factory=time.monotonic)
    queued_ms: float = 0.0  # from submission to first admission
    skipped: int = 0  # steps since its last row that it has left to higher classes
    _matcher: Matcher | None = field(init=False)  # of its grammar, behind the first `_matched` tokens
    _matched: int = field(init=False)

    def __post_init__(self) -> None:
        prompt = self.request.prompt
        # Only full blocks can be found again: the rest of a prompt that is only warmed is nobody's.
        full = len(prompt) // BLOCK_SIZE * BLOCK_SIZE
        self.prompt_length = full if self.request.prefill_only else len(prompt)
        self.tokens = list(prompt[: self.prompt_length])
        grammar = self.request.sampling.grammar
        self._matcher = grammar.matcher() if grammar is not None else None
        self._matched = len(self.tokens)

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def rank(self) -> int:
        """Of its class of service: 0 is served first."""
        return self.request.rank

    @property
    def pending(self) -> int:
        """Known tokens whose keys and values are not computed yet."""
        return len(self.tokens) - self.num_computed

    @property
    def is_decoding(self) -> bool:
        known = len(self.tokens)
        return known - self.num_computed == 1 and known > self.prompt_length

    def samples_after(self, known: int) -> bool:
        """Whether a token is chosen once so many of the pending ones are computed."""
        return known == self.pending and not self.request.prefill_only

    def is_warm_after(self, known: int) -> bool:
        """Whether so many of the pending tokens are all that a request for keys and values alone still wants."""
        return known == self.pending and self.request.prefill_only

    @property
    def output_count(self) -> int:
        return len(self.tokens) - self.prompt_length

    def matcher(self, path: tuple[int, ...] = ()) -> Matcher | None:
        """The matcher of its grammar, if it has one, behind its tokens and those of `path`.

        Of a path, longer ones may be asked for after it, or what it began with once its tokens are the sequence's own:
        a walk keeps whatever it chooses, so a matcher never goes back.
        """
        if self._matcher is not None:
            known = len(self.tokens)
            new = [*self.tokens[self._matched :], *path[max(self._matched - known, 0) :]]
            self._matcher.advance(new)
            self._matched += len(new)
        return self._matcher

    def ending(self, token: int, count: int, context_length: int) -> Finish | None:
        """Why the reply ends if `token` becomes the count-th new one (from 1), or None when it goes on."""
        if token in self.request.sampling.stop_ids:
            return "stop"
        if self.output_count + count >= self.request.sampling.max_tokens:
            return "length"
        return "length" if len(self.tokens) + count >= context_length else None
