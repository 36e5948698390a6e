"""One reply from submit to its last piece: requests, streams, committers and clocks, the same for every protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType

from paceline.engine.request import Request

from .caller import ANYONE, Caller
from .committer import Committer, Ending, Piece
from .fields import JsonObject
from .metrics import Meter, Outcome
from .parameters import Parameters, derive_seed, random_seed, speculation_of
from .prediction import PredictionMatch
from .prepared import Prepared
from .service import Service
from .spec_figures import SpecFigures
from .stop_strings import StopStrings
from .stream import Stream

_OUTCOMES: Mapping[Ending, Outcome] = MappingProxyType(
    {"length": "length", "prefilled": "prefilled", "abort": "cancelled", "error": "error"}
)


@dataclass(frozen=True, slots=True)
class Step:
    """What one engine step gave one choice."""

    index: int
    piece: Piece


class Generation:
    """The n choices of one prompt. As an async context manager it aborts on the way out whatever still runs."""

    def __init__(
        self,
        service: Service,
        *,
        id: str,  # noqa: A002 - the reply's id on the wire
        prepared: Prepared,
        parameters: Parameters,
        protocol: str,
        started: float,  # time.perf_counter() when the request arrived
        n: int = 1,
        caller: Caller = ANYONE,
        pin: str = "",
        prefill_only: bool = False,
        prediction: tuple[int, ...] = (),
    ) -> None:
        """Submits at once. Raises RequestError or OverloadedError, with nothing left running.

        caller: whoever asks. prediction: tokens the reply may turn out to have. pin: whose conversation this is, for
        `Request.pin`. prefill_only: the prompt is computed for later requests, and nothing is said to it.
        """
        self.seed = parameters.seed if parameters.seed is not None else random_seed()
        prompt = prepared.prompt
        room = service.context_length - len(prompt)
        limit = room if parameters.max_tokens is None else min(parameters.max_tokens, room)
        speculation = speculation_of(parameters.speculation, caller.id, prediction[:limit])
        self.requests = [
            Request(
                id=f"{id}-{i}",
                prompt=prompt,
                sampling=parameters.sampling_with(
                    max_tokens=limit,
                    seed=derive_seed(self.seed, i),
                    stop_ids=service.stop_ids,
                    grammar=prepared.grammar,
                ),
                priority=parameters.priority,
                speculation=speculation,
                prefill_only=prefill_only,
                pin=pin,
            )
            for i in range(n)
        ]
        self._index = {request.id: i for i, request in enumerate(self.requests)}
        stops = StopStrings(parameters.stop)
        self.committers = [
            Committer(
                service.tokenizer,
                stops=stops,
                stop_ids=service.stop_ids,
                prompt_tokens=len(prompt),
                reader=prepared.reader(request.sampling.seed),
                shown=prepared.shown,
            )
            for request in self.requests
        ]
        self._matches = [PredictionMatch(prediction) for _ in self.requests]
        self.meters = [Meter(service.metrics, protocol, started) for _ in self.requests]
        try:
            self._stream: Stream = service.streams.open(self.requests)
        except Exception:
            for meter in self.meters:
                meter.end("refused")
            raise

    async def __aenter__(self) -> Generation:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    @property
    def ready(self) -> bool:
        """True when `next` returns at once."""
        return self._stream.ready

    async def next(self, patience: float | None = None) -> Step | None:
        """The next piece of any choice, None after the last; TimeoutError after `patience` seconds without one."""
        delta = await self._stream.next(patience)
        if delta is None:
            return None
        index = self._index[delta.request_id]
        piece = self.committers[index].push(delta)
        self._matches[index].push(piece.tokens)
        self.meters[index].tokens(len(piece.tokens), delta.queued_ms)
        if piece.cut is not None:
            self._stream.cut(delta.request_id, piece.cut)
        if piece.finish is not None:
            self.meters[index].end(_OUTCOMES.get(piece.finish, "stop"))
        return Step(index, piece)

    def abort(self, outcome: Outcome = "cancelled") -> None:
        """Ends what still runs; the engine is free of it within one step. Harmless after the end."""
        self._stream.abort()
        for meter in self.meters:
            meter.end(outcome)

    def usage(self) -> JsonObject:
        """Chat completions' `usage`: the prompt counts once, the choices' tokens add up."""
        first = self.committers[0].usage
        completion = sum(committer.usage.completion_tokens for committer in self.committers)
        return {
            "prompt_tokens": first.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": first.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": max(c.usage.cached_tokens for c in self.committers)},
            "completion_tokens_details": {
                "reasoning_tokens": sum(committer.usage.reasoning_tokens for committer in self.committers),
                "accepted_prediction_tokens": sum(match.accepted for match in self._matches),
                "rejected_prediction_tokens": sum(match.rejected for match in self._matches),
            },
        }

    def metrics(self) -> JsonObject:
        """`metrics` of the reply: the first token's time, and speculation figures summed over choices."""
        figures = sum((committer.figures for committer in self.committers), SpecFigures())
        return {"time_to_first_token_ms": self.meters[0].ttft_ms, "speculative_decoding": figures.body()}

    @property
    def committer(self) -> Committer:
        """Of the first choice."""
        return self.committers[0]
