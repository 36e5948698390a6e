"""Everything the protocols share: the loaded model, its text side, the engine's streams and the metrics."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.errors import RequestError
from paceline.engine.grammar import Grammar
from paceline.engine.loop import EngineLoop
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.spec.tree import MAX_NODES

from .api_errors import ApiError
from .caller import ANYONE, Caller
from .chat_template import ChatTemplate
from .context_limit import ContextLimit
from .fields import JsonObject
from .grammars import Grammars
from .metrics import Metrics
from .parameters import Limits, Parameters
from .prepared import Prepared
from .reply_format import FREE_TEXT, lark_of
from .reply_grammar import ReplyGrammar, lark_of_reply
from .reply_reader import readers
from .shared_heads import SharedHeads
from .stage_bars import progress_bars
from .stream import Streams
from .template_guard import strings
from .thinking import Thinking
from .tokenizer import Tokenizer

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_MODEL_ALIAS = "default"  # what a client may write instead of the served id
_INLINE_CHARS = 2_000  # longer prompts are templated and tokenised off the event loop: 1 µs or so a character
_LONG_CHARS = 65_536  # of prompts longer than this one at a time is, so that they take one core and the memory of one


class Service:
    """One served model. Made on any thread, then used from one event loop."""

    def __init__(
        self,
        *,
        model_id: str,
        engine: Engine,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        max_nodes: int = MAX_NODES,
        limited_by: str | None = None,
    ) -> None:
        """max_nodes: rows of a tree at the most. limited_by: the option that keeps the context below what the model was
        made for, if one does."""
        self.model_id = model_id
        self.created = int(time.time())
        self.tokenizer = tokenizer
        self.template = template
        self.context_length: int = engine.context_length
        self._limit = ContextLimit(engine.context_length, limited_by)
        self.short_context = self._limit.warning  # for the operator
        self.speculators: tuple[str, ...] = tuple(engine.speculators)
        self.limits = Limits(vocab_size=engine.vocab_size, speculators=self.speculators, max_nodes=max_nodes)
        self.stop_ids = frozenset(tokenizer.eos_ids)
        self.streams = Streams(engine)
        self.metrics = Metrics(self.loop.stats)
        self.grammars = Grammars(tokenizer, engine.vocab_size)
        self.fingerprint = f"paceline-{model_id}"
        self._heads = SharedHeads(tokenizer)
        self._started = False
        self._long_prompts = ThreadPoolExecutor(1, "paceline-long-prompt")
        self._ahead = ThreadPoolExecutor(1, "paceline-ahead")
        self._new_grammars = ThreadPoolExecutor(1, "paceline-new-grammar")  # a slow one delays other new ones alone

    @classmethod
    def build(cls, path: Path, cache: Path, config: EngineConfig, model_id: str) -> Service:
        """Opens the model at `path` and builds its engine; blocks for as long as loading takes.

        Raises ModelError or ConfigError.
        """
        checkpoint = open_checkpoint(path, cache)
        assets = checkpoint.text
        tokenizer = Tokenizer.from_assets(assets)
        template = ChatTemplate(assets.chat_template, assets.bos_token, assets.eos_token, tokenizer)
        with progress_bars() as bars:
            engine = build_engine(
                checkpoint, config, cache=cache, report=lambda share: bars.report("preparing passes", share)
            )
        limited_by = None
        if engine.context_length < checkpoint.config.context_length:
            limited_by = "--kv-memory" if config.context_length is None else "--context-length"
        return cls(
            model_id=model_id,
            engine=engine,
            tokenizer=tokenizer,
            template=template,
            max_nodes=config.max_nodes,
            limited_by=limited_by,
        )

    @property
    def loop(self) -> EngineLoop:
        return self.streams.loop

    def start(self) -> None:
        self.loop.start()
        self._started = True

    def stop(self) -> None:
        self._started = False
        for executor in (self._long_prompts, self._new_grammars, self._ahead):
            executor.shutdown(wait=False, cancel_futures=True)
        self.loop.stop()

    @property
    def healthy(self) -> bool:
        """True while the engine runs and really steps whenever it has work."""
        return self._started and not self.loop.stats().stuck

    def require_model(self, model: str | None) -> None:
        """Raises ApiError 404 for a model that is not the served one; None asks for no certain one."""
        if model is not None and model not in (self.model_id, DEFAULT_MODEL_ALIAS):
            raise ApiError(
                404,
                f"The model {model[:80]!r} is not served here; use {self.model_id!r} or {DEFAULT_MODEL_ALIAS!r}.",
                param="model",
                code="model_not_found",
            )

    async def prompt(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """Token ids of a conversation, with the opening of the reply.

        Raises RequestError when the template refuses the messages or no room is left for one token of reply
        (code `context_length_exceeded`).
        """
        return (await self.prepare(messages, Parameters())).prompt

    async def prepare(
        self, messages: Sequence[Mapping[str, Any]], parameters: Parameters, caller: Caller = ANYONE
    ) -> Prepared:
        """What a reply with these parameters to this conversation needs. Raises as `prompt` does, and RequestError
        (code `invalid_grammar`) for a format or a tool's schema that cannot be followed; before all that as
        `caller.check` does."""
        caller.check()
        tools = [tool.body() for tool in parameters.tools.offered]
        chars = sum(map(len, strings([messages, tools])))
        ids, opened = await self._tokens(chars, self._encode, (messages, tools, parameters.thinking))
        if len(ids) >= self.context_length:
            raise self._limit.refusal(f"{len(ids)} tokens", _said(tools))
        template = self.template
        return Prepared(
            tuple(ids),
            grammar=await self._reply_grammar(lark_of_reply(template, parameters, opened=opened)),
            reader=readers(template.tags, template.tool_format, parameters.tools, prompt=ids, opened=opened),
            shown=template.shown.characters,
        )

    async def prompts_ahead(
        self, conversations: Sequence[Sequence[Mapping[str, Any]]], parameters: Parameters
    ) -> list[tuple[int, ...]]:
        """The prompts that replies to `conversations` would have, less those that are too long or that the template
        refuses: [] if it refuses all. Off the event loop, and for one caller at a time: nobody waits for them."""
        tools = [tool.body() for tool in parameters.tools.offered]

        def encode() -> list[tuple[int, ...]]:
            rendered = []
            for messages in conversations:
                with contextlib.suppress(RequestError):
                    rendered.append(self._rendered(messages, tools, parameters.thinking))
            return self._heads.encode(rendered)

        prompts = await asyncio.get_running_loop().run_in_executor(self._ahead, encode)
        return [prompt for prompt in prompts if len(prompt) < self.context_length]

    async def grammar(self, lark: Callable[[], str], param: str) -> Grammar:
        """`Grammars.compile` of what `lark` returns, both off the event loop; one that is known waits for no other.
        Raises RequestError, naming `param`."""
        text = await asyncio.to_thread(lark)
        if (known := self.grammars.find(text)) is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(
            self._new_grammars, lambda: self.grammars.compile(text, param)
        )

    async def _reply_grammar(self, wanted: ReplyGrammar | None) -> Grammar | None:
        if wanted is None:
            return None
        try:
            return await self.grammar(wanted.lark, wanted.param)
        except RequestError:
            if wanted.needed:
                raise
            return None

    async def prepare_text(
        self, prompt: str | Sequence[int], parameters: Parameters, caller: Caller = ANYONE
    ) -> Prepared:
        """What a reply to a text or to token ids needs, which stand as they are: no template, and a text's names of
        special tokens are control tokens. Raises as `prepare` does."""
        caller.check()
        ids = prompt if not isinstance(prompt, str) else await self._tokens(len(prompt), self._encode_text, prompt)
        if len(ids) >= self.context_length:
            raise self._limit.refusal(f"{len(ids)} tokens", "the prompt alone is", "prompt")
        if not ids:
            raise RequestError("prompt has no tokens; send a text that is more than nothing.", param="prompt")
        form = parameters.format
        wanted = None if form.kind == FREE_TEXT.kind else await self.grammar(lambda: lark_of(form), form.param)
        return Prepared(tuple(ids), grammar=wanted)

    async def prediction(self, text: str) -> tuple[int, ...]:
        """Token ids of a predicted output, as much of its beginning as could ever be generated."""
        text = text[: self.max_chars]
        ids = await self._tokens(len(text), self.tokenizer.encode, text)
        return tuple(ids[: self.context_length])

    async def tokens_of_messages(
        self, messages: Sequence[Mapping[str, Any]], parameters: Parameters, *, opening: bool
    ) -> list[int]:
        """A conversation of any length, with or without the opening of a reply. Raises RequestError when the template
        refuses it."""
        tools = [tool.body() for tool in parameters.tools.offered]

        def encode(messages: Sequence[Mapping[str, Any]]) -> list[int]:
            text, guard = self.template.prepare(messages, tools, parameters.thinking, opening=opening)
            return self.tokenizer.encode_rendered(text, guard=guard)

        return await self._tokens(sum(map(len, strings([messages, tools]))), encode, messages)

    async def tokens_of_text(self, text: str, *, document: bool) -> list[int]:
        """A text of any length. document: with what the model's texts begin with."""
        encode = self.tokenizer.encode_document if document else self.tokenizer.encode_rendered
        return await self._tokens(len(text), encode, text)

    async def text_of(self, ids: Sequence[int]) -> str:
        """With the names of special tokens."""
        return await self._tokens(len(ids), self.tokenizer.spell, ids)

    async def names_of(self, ids: Sequence[int]) -> list[str]:
        """Each token for people to read."""
        return await self._tokens(len(ids), lambda ids: list(map(self.tokenizer.token_text, ids)), ids)

    async def _tokens(self, chars: int, encode: Callable[[T], R], what: T) -> R:
        """encode(what), where so many characters or tokens do not hold up the event loop."""
        if chars <= _INLINE_CHARS:
            return encode(what)
        if chars <= _LONG_CHARS:
            return await asyncio.to_thread(encode, what)
        return await asyncio.get_running_loop().run_in_executor(self._long_prompts, encode, what)

    @property
    def max_chars(self) -> int:
        """No text longer than this fits into the context."""
        return self.context_length * self.tokenizer.longest

    def _encode(
        self, asked: tuple[Sequence[Mapping[str, Any]], Sequence[JsonObject], Thinking]
    ) -> tuple[list[int], bool]:
        """The prompt's tokens, and whether it opens a thought."""
        text, guard = self._rendered(*asked)
        return self.tokenizer.encode_rendered(text, guard=guard), self.template.opens_thought(text)

    def _rendered(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[JsonObject], thinking: Thinking
    ) -> tuple[str, str | None]:
        """As `ChatTemplate.prepare`; refuses what is longer than the context in any case."""
        text, guard = self.template.prepare(messages, tools, thinking)
        size = len(text) if guard is None else len(text) - text.count(guard)
        if size > self.max_chars:  # tokenising would take seconds, only to say the same
            raise self._limit.refusal(f"{size} characters, more than that many tokens can hold", _said(tools))
        return text, guard

    def _encode_text(self, text: str) -> list[int]:
        if len(text) > self.max_chars:
            raise self._limit.refusal(
                f"{len(text)} characters, more than that many tokens can hold", "the prompt alone is", "prompt"
            )
        return self.tokenizer.encode_document(text)


def _said(tools: Sequence[JsonObject]) -> str:
    return f"the messages{' and tools' if tools else ''} alone are"
