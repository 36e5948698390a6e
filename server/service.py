"""Everything the protocols share: the loaded model, its text side, the engine's streams and the metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.errors import RequestError
from paceline.engine.loop import EngineLoop
from paceline.engine.model.checkpoint import open_checkpoint

from .chat_template import ChatTemplate
from .metrics import Metrics
from .parameters import Limits
from .stream import Streams
from .tokenizer import Tokenizer

DEFAULT_MODEL_ALIAS = "default"  # what a client may write instead of the served id
_INLINE_CHARS = 16_384  # longer prompts are templated and tokenised off the event loop


class Service:
    """One served model. Made on any thread, then used from one event loop."""

    def __init__(self, *, model_id: str, engine: Engine, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self.model_id = model_id
        self.created = int(time.time())
        self.tokenizer = tokenizer
        self.template = template
        self.context_length: int = engine.context_length
        self.speculators: tuple[str, ...] = tuple(engine.speculators)
        self.limits = Limits(vocab_size=engine.vocab_size, speculators=self.speculators)
        self.stop_ids = frozenset(tokenizer.eos_ids)
        self.streams = Streams(engine)
        self.metrics = Metrics(self.loop.stats)
        self.fingerprint = f"paceline-{model_id}"
        self._started = False

    @classmethod
    def build(cls, path: Path, cache: Path, config: EngineConfig, model_id: str) -> Service:
        """Opens the model at `path` and builds its engine; blocks for as long as loading takes.

        Raises ModelError or ConfigError.
        """
        checkpoint = open_checkpoint(path, cache)
        assets = checkpoint.text
        tokenizer = Tokenizer.from_assets(assets)
        template = ChatTemplate(assets.chat_template, assets.bos_token, assets.eos_token, tokenizer)
        engine = build_engine(checkpoint, config, cache=cache)
        return cls(model_id=model_id, engine=engine, tokenizer=tokenizer, template=template)

    @property
    def loop(self) -> EngineLoop:
        return self.streams.loop

    def start(self) -> None:
        self.loop.start()
        self._started = True

    def stop(self) -> None:
        self._started = False
        self.loop.stop()

    @property
    def healthy(self) -> bool:
        """True while the engine runs and really steps whenever it has work."""
        return self._started and not self.loop.stats().stuck

    def serves(self, model: str) -> bool:
        return model in (self.model_id, DEFAULT_MODEL_ALIAS)

    async def prompt(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """Token ids of a conversation, with the opening of the reply.

        Raises RequestError when the template refuses the messages or no room is left for one token of reply
        (code `context_length_exceeded`).
        """
        if sum(len(str(message.get("content", ""))) for message in messages) <= _INLINE_CHARS:
            ids = self.template.encode(messages)
        else:
            ids = await asyncio.to_thread(self.template.encode, messages)
        if len(ids) >= self.context_length:
            raise RequestError(
                f"This model's maximum context length is {self.context_length} tokens, and the messages alone are "
                f"{len(ids)} tokens; shorten them so that at least one token of reply fits.",
                param="messages",
                code="context_length_exceeded",
            )
        return tuple(ids)
