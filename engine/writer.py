"""The engine as a writer of training texts: many conversations at once, no protocol around them."""

from __future__ import annotations

from paceline.spec.training.dialogues import Wish

from .engine import Engine
from .errors import ModelError
from .request import Delta, Request, SamplingParams, Speculation


class EngineWriter:
    """Implements `Writer` of spec/training. stop_ids: they end what is written and are no part of it.

    most: how many sequences it is given at once.
    """

    def __init__(self, engine: Engine, stop_ids: frozenset[int], most: int) -> None:
        self._engine = engine
        self._stop_ids = stop_ids
        self.most = most
        self._written: dict[int, list[int]] = {}
        self._finished: list[int] = []

    def begin(self, key: int, wish: Wish) -> None:
        """Raises RequestError for a wish the engine cannot fulfil."""
        sampling = SamplingParams(
            seed=wish.seed, temperature=wish.temperature, max_tokens=wish.max_tokens, stop_ids=self._stop_ids
        )
        # Plain decoding: a full batch leaves nothing for guesses.
        self._engine.submit(
            Request(id=str(key), prompt=wish.prompt, sampling=sampling, speculation=Speculation(mode="none"))
        )
        self._written[key] = []

    def advance(self) -> list[tuple[int, list[int]]]:
        """Steps until something is finished. Raises ModelError when the engine fails."""
        while self._engine.has_work and not self._finished:
            self._engine.step(self._post)
        finished = [(key, self._written.pop(key)) for key in self._finished]
        self._finished.clear()
        return finished

    def _post(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            key = int(delta.request_id)
            if delta.finish == "error":
                raise ModelError(f"The model could not go on writing ({delta.error}); run the same command again.")
            self._written[key] += (token for token in delta.tokens if token not in self._stop_ids)
            if delta.finish is not None:
                self._finished.append(key)
