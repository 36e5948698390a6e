"""What a client may ask of one reply, the same for every protocol: read, checked, and turned into engine terms."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.engine.errors import RequestError
from paceline.engine.grammar import Grammar
from paceline.engine.request import MAX_TOP_LOGPROBS, PRIORITY_ORDER, Priority, SamplingParams, Speculation
from paceline.spec.tree import MAX_NODES

from .fields import Fields
from .reply_format import FREE_TEXT, ReplyFormat, read_format, read_structured_outputs
from .thinking import MODELS_OWN, Thinking, read_thinking
from .tool_use import NO_TOOLS, ToolUse, read_tools
from .voice import NO_VOICE, Voice

MAX_STOP_STRINGS = 64
MAX_STOP_CHARS = 1000
MAX_BIASES = 4096
MAX_REUSE_KEY = 256  # characters
_MASK = 2**64 - 1


def random_seed() -> int:
    """A seed for a request that names none; 53 bits, so that JavaScript clients can send it back unharmed."""
    return secrets.randbits(53)


def derive_seed(seed: int, index: int) -> int:
    """The seed of choice `index` of a request: choice 0 uses the seed itself, the others a mix of both.

    53 bits of it: every client can send it back unharmed, JavaScript too.

    The mix is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    """
    if index == 0:
        return seed
    z = (seed + index * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) & (2**53 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the loaded model allows."""

    vocab_size: int
    speculators: tuple[str, ...]
    max_nodes: int = MAX_NODES  # rows of a tree, whatever a request allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Everything that shapes one reply, its prompt aside.

    sampling: how tokens are chosen. Its token limit, seed and stop ids are placeholders until `sampling_with`.
    """

    max_tokens: int | None = None  # None: as many as the context still holds
    seed: int | None = None  # None: a random one, reported in the reply
    sampling: SamplingParams = field(default_factory=lambda: SamplingParams(max_tokens=1, seed=0))
    stop: tuple[str, ...] = ()
    speculation: Speculation = field(default_factory=Speculation)
    telemetry: bool = False  # figures of each verify step beside its text
    priority: Priority = "normal"
    tools: ToolUse = NO_TOOLS
    thinking: Thinking = MODELS_OWN
    format: ReplyFormat = FREE_TEXT
    voice: Voice = NO_VOICE

    @property
    def figures(self) -> bool:
        """Whether figures of each verify step are told beside its text: a trace is told with them."""
        return self.telemetry or self.speculation.trace

    def sampling_with(
        self, *, max_tokens: int, seed: int, stop_ids: frozenset[int], grammar: Grammar | None = None
    ) -> SamplingParams:
        return replace(self.sampling, max_tokens=max_tokens, seed=seed, stop_ids=stop_ids, grammar=grammar)


def read_parameters(fields: Fields, limits: Limits, base: Parameters) -> Parameters:
    """`base` with what `fields` names changed; the token limit has another name in each protocol and is not read here.

    Raises RequestError, naming the field, for a wrong type or a value without meaning.
    """
    changes: dict[str, Any] = {
        "tools": read_tools(fields, base.tools),
        "thinking": read_thinking(fields, base.thinking),
    }
    sampling: dict[str, Any] = {}
    for key in ("temperature", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty"):
        if (number := fields.number(key)) is not None:
            sampling[key] = number
    if (top_k := fields.integer("top_k", low=-1)) is not None:
        sampling["top_k"] = max(top_k, 0)  # some clients write -1 for off
    if (seed := fields.integer("seed", low=-(2**63), high=_MASK)) is not None:
        changes["seed"] = seed & _MASK
    if fields.has("stop"):
        changes["stop"] = _read_stop(fields)
    if (bias := fields.child("logit_bias")) is not None:
        sampling["logit_bias"] = _read_bias(bias, limits)
    if fields.has("logprobs") or fields.has("top_logprobs"):
        sampling["logprobs"] = _read_logprobs(fields)
    if (priority := fields.choice("priority", PRIORITY_ORDER)) is not None:
        changes["priority"] = priority
    if (structured := fields.child("structured_outputs")) is not None:
        changes["format"] = read_structured_outputs(structured)
    if (form := fields.child("response_format")) is not None:
        if structured is not None:
            fields.refuse("structured_outputs", "and response_format exclude each other; leave one out.")
        changes["format"] = read_format(form)
    if (asked := fields.child("speculation")) is not None:
        changes["speculation"] = _read_speculation(asked, limits, base.speculation)
        if (telemetry := asked.boolean("telemetry")) is not None:
            changes["telemetry"] = telemetry
    return replace(base, sampling=replace(base.sampling, **sampling), **changes)


def _read_stop(fields: Fields) -> tuple[str, ...]:
    value = fields.values["stop"]
    strings = [value] if isinstance(value, str) else fields.array("stop") or []
    if len(strings) > MAX_STOP_STRINGS:
        fields.refuse("stop", f"may hold at most {MAX_STOP_STRINGS} strings, got {len(strings)}.")
    for string in strings:
        if not isinstance(string, str) or not string:
            fields.refuse("stop", "must be a non-empty string or a list of non-empty strings.")
        if len(string) > MAX_STOP_CHARS:
            fields.refuse("stop", f"strings may be at most {MAX_STOP_CHARS} characters long, got one of {len(string)}.")
    return tuple(dict.fromkeys(strings))


def _read_bias(bias: Fields, limits: Limits) -> dict[int, float]:
    if len(bias.values) > MAX_BIASES:
        raise RequestError(
            f"{bias.path} may name at most {MAX_BIASES} tokens, got {len(bias.values)}.", param=bias.path
        )
    out: dict[int, float] = {}
    for key in bias.values:
        token = int(key) if key.isascii() and key.isdigit() and len(key) < 10 else -1
        if not 0 <= token < limits.vocab_size:
            bias.refuse(key, f"is not a token id of this model; ids are 0 to {limits.vocab_size - 1}.")
        if (number := bias.number(key)) is not None:
            out[token] = number
    return out


def _read_logprobs(fields: Fields) -> int | None:
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", low=0, high=MAX_TOP_LOGPROBS)
    if not wanted and top:
        fields.refuse("top_logprobs", "needs logprobs set to true.")
    return (top or 0) if wanted else None


def _read_speculation(asked: Fields, limits: Limits, base: Speculation) -> Speculation:
    mode = asked.string("mode")
    if mode is not None and mode not in limits.speculators:
        names = ", ".join(limits.speculators)
        asked.refuse("mode", f"{mode[:40]!r} is not loaded here; use one of {names}.", code="unknown_speculator")
    nodes = asked.integer("max_nodes", low=1, high=MAX_NODES)
    key = asked.string("reuse_key")
    if key is not None and len(key) > MAX_REUSE_KEY:
        asked.refuse("reuse_key", f"may be at most {MAX_REUSE_KEY} characters long, got {len(key)}.")
    trace = asked.boolean("trace")
    return replace(
        base,
        mode=mode or base.mode,
        max_nodes=nodes if nodes is not None else base.max_nodes,
        reuse_key=key if key is not None else base.reuse_key,
        trace=trace if trace is not None else base.trace,
    )


def speculation_of(base: Speculation, caller: str, prediction: tuple[int, ...]) -> Speculation:
    """What the engine is told. caller: the API key the request came with; replies are never shared across callers,
    whatever key for reuse they name, and the engine learns of neither key."""
    named = base.reuse_key
    digest = hashlib.sha256(f"{len(caller)} {caller} {named}".encode(errors="surrogatepass")).hexdigest()
    return replace(base, prediction=prediction, reuse_key=digest if named else "")
