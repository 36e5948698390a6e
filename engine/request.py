"""What goes into the engine and what comes out: immutable, made of token ids, never of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from paceline.spec.planner import Reason
from paceline.spec.tree import MAX_NODES

from .errors import RequestError
from .grammar import Grammar

MAX_TOP_LOGPROBS = 20

Finish = Literal["stop", "length", "prefilled", "abort", "error"]
Priority = Literal["interactive", "normal", "background"]

PRIORITY_ORDER: Mapping[Priority, int] = MappingProxyType({"interactive": 0, "normal": 1, "background": 2})


def _require(ok: bool, param: str, message: str) -> None:
    if not ok:
        raise RequestError(message, param=param)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen; a reply is a pure function of weights, prompt, these values and `seed`.

    Raises RequestError, naming the field, for a value that has no meaning.
    """

    max_tokens: int
    seed: int  # 0 … 2^64 - 1, keys the Gumbel noise
    temperature: float = 1.0  # 0 is plain argmax
    top_p: float = 1.0  # 1 is off
    top_k: int = 0  # 0 is off
    min_p: float = 0.0  # 0 is off
    repetition_penalty: float = 1.0  # 1 is off; divides positive and multiplies negative logits of seen tokens
    frequency_penalty: float = 0.0  # per occurrence in the output
    presence_penalty: float = 0.0  # once per token present in the output
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    stop_ids: frozenset[int] = frozenset()  # these end the reply and are never part of its text
    logprobs: int | None = None  # None is off, else the number of alternatives reported per token
    grammar: Grammar | None = None  # the reply's tokens are those it allows

    def __post_init__(self) -> None:
        _require(self.max_tokens >= 1, "max_tokens", f"max_tokens must be at least 1, got {self.max_tokens}.")
        _require(0 <= self.seed < 2**64, "seed", f"seed must be between 0 and 2^64 - 1, got {self.seed}.")
        for name, low, high in (
            ("temperature", 0.0, 100.0),
            ("top_p", 0.0, 1.0),
            ("min_p", 0.0, 1.0),
            ("frequency_penalty", -2.0, 2.0),
            ("presence_penalty", -2.0, 2.0),
            ("repetition_penalty", 0.01, 100.0),
        ):
            value = getattr(self, name)
            _require(
                low <= value <= high,
                name,
                f"{name} must be between {low:g} and {high:g}, got {value}.",
            )
        _require(self.top_p > 0, "top_p", "top_p must be above 0; use temperature 0 for greedy decoding.")
        _require(self.top_k >= 0, "top_k", f"top_k must be 0 (off) or positive, got {self.top_k}.")
        _require(
            self.logprobs is None or 0 <= self.logprobs <= MAX_TOP_LOGPROBS,
            "top_logprobs",
            f"top_logprobs must be between 0 and {MAX_TOP_LOGPROBS}, got {self.logprobs}.",
        )
        for value in self.logit_bias.values():
            _require(
                -100 <= value <= 100,
                "logit_bias",
                f"logit_bias values must be between -100 and 100, got {value}.",
            )

    @property
    def rewrites_logits(self) -> bool:
        """True when the logits of a node depend on more than the model: the tokens before it, or a bias."""
        return (
            self.repetition_penalty != 1.0
            or self.frequency_penalty != 0.0
            or self.presence_penalty != 0.0
            or bool(self.logit_bias)
        )

    @property
    def draws_alone(self) -> bool:
        """True when the next token follows from the logits of its node, and nothing else is asked about them."""
        return self.logprobs is None and self.grammar is None and not self.rewrites_logits


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What a request allows the drafters to do; it never changes the text."""

    mode: str = "auto"  # "auto", "none", or the name of one loaded drafter
    max_nodes: int = MAX_NODES  # verified rows per step, the root included; 1 is plain decoding
    prediction: tuple[int, ...] = ()  # tokens the client expects as the reply, or as parts of it
    reuse_key: str = ""  # the reply may be drafted from in later requests of the same key; "": kept for nobody
    trace: bool = False  # each delta tells the tree that was verified for it

    def __post_init__(self) -> None:
        _require(
            1 <= self.max_nodes <= MAX_NODES,
            "speculation.max_nodes",
            f"speculation.max_nodes must be between 1 and {MAX_NODES}, got {self.max_nodes}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One reply to make: prompt ids, sampling, priority and speculation.

    prefill_only: no token is chosen; keys and values of the prompt's full blocks are computed and published, and the
    request ends with "prefilled". pin: when the request ends, however it does, the published blocks of its tokens are
    pinned for this owner, in place of what was pinned for it before; "" pins nothing.
    """

    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams
    priority: Priority = "normal"
    speculation: Speculation = Speculation()
    prefill_only: bool = False
    pin: str = ""

    def __post_init__(self) -> None:
        _require(len(self.prompt) > 0, "messages", "The prompt is empty; send at least one token of text.")
        _require(
            self.priority in PRIORITY_ORDER,
            "priority",
            f"priority must be one of {', '.join(PRIORITY_ORDER)}, got {self.priority!r}.",
        )

    @property
    def rank(self) -> int:
        """Its class of service as a number: 0 is served first."""
        return PRIORITY_ORDER[self.priority]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probabilities of one emitted token under the processed, untempered distribution (natural log)."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]  # (token, logprob), most likely first


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTrace:
    """The tree one step verified for one reply, and what became of it. Node 0 is the pending token, parents come first.

    tokens, parents, sources, estimates, chances: [n]. sources: the drafters who guessed the node, joined by "+".
    estimates: how likely the surest of them said it was, given its parent; chances: how likely the planner took it to
    be, going by how often such guesses were right. Of the pending token they are "", 1 and 1, and its parent is -1.
    path: the nodes that became the reply's, root first. bonus: the model's own token behind the last of them; None
    where there is none.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    sources: tuple[str, ...]
    estimates: tuple[float, ...]
    chances: tuple[float, ...]
    path: tuple[int, ...]
    bonus: int | None

    @property
    def emitted(self) -> tuple[tuple[int, str], ...]:
        """The tokens the step brought, in order, each with the drafters who guessed it; "" for the model's own."""
        accepted = tuple([(self.tokens[node], self.sources[node]) for node in self.path[1:]])
        return accepted if self.bonus is None else (*accepted, (self.bonus, ""))

    def kept(self, count: int) -> TreeTrace:
        """As if the reply had ended with the count-th of the tokens."""
        return replace(self, path=self.path[: count + 1], bonus=self.bonus if count >= len(self.path) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What one step did for one request: all its new tokens together.

    `accepted` of the `drafted` guesses became tokens, so `len(tokens) <= accepted + 1`; the extra one is the bonus
    token. A stop id that ended the reply is the last of `tokens`: it counts as generated but is not text.
    """

    request_id: str
    tokens: tuple[int, ...]
    finish: Finish | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None  # one per token when asked for
    drafted: int = 0
    accepted: int = 0
    source: str = ""  # the drafters whose guesses were accepted, joined by "+"; "" when none was
    reason: Reason | None = None  # why this many nodes were verified
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    queued_ms: float = 0.0  # between submission and the first step the request had a part in
    step_ms: float = 0.0  # wall time of the step
    trace: TreeTrace | None = None  # None where the request asks for none, or no token was to be chosen
    error: str | None = None  # with finish "error"
