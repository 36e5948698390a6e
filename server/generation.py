"""One reply from submit to its last piece: requests, streams, committers and clocks, the same for every protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType

from paceline.engine.request import PRIORITY_ORDER, Request

from .account import Account
from .api_errors import as_api_error
from .caller import ANYONE, Caller
from .committer import Committer, Ending, Piece
from .fields import JsonObject
from .logs import log_event
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
    """The n choices of each prompt, mostly of one. As an async context manager it aborts on the way out whatever still
    runs."""

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
        further: Sequence[Prepared] = (),
        caller: Caller = ANYONE,
        pin: str = "",
        prefill_only: bool = False,
        prediction: tuple[int, ...] = (),
    ) -> None:
        """Submits at once. Raises RequestError, OverloadedError or ApiError (the caller's limits), with nothing left
        running.

        further: prompts that are answered beside the first, n choices each, none or all of them; each as it would be
        alone. caller: whoever asks; its limits count all this as one reply. It pays for the prompts at once, gets
        back what was cached with the first token, and pays for each piece as it comes. prediction: tokens the reply may
        turn out to have. pin: whose conversation this is, for `Request.pin`. prefill_only: the prompt is computed for
        later requests, and nothing is said to it.
        """
        self.seed = parameters.seed if parameters.seed is not None else random_seed()
        self._n = n
        places = [(each, i) for each in (prepared, *further) for i in range(n)]
        limits = [service.context_length - len(each.prompt) for each, _ in places]
        if parameters.max_tokens is not None:
            limits = [min(parameters.max_tokens, room) for room in limits]
        speculation = speculation_of(parameters.speculation, caller.id, prediction[: limits[0]])
        self.requests = [
            Request(
                id=f"{id}-{number}",
                prompt=each.prompt,
                sampling=parameters.sampling_with(
                    max_tokens=limit,
                    seed=derive_seed(self.seed, i),
                    stop_ids=service.stop_ids,
                    grammar=each.grammar,
                ),
                priority=max(parameters.priority, caller.best, key=PRIORITY_ORDER.__getitem__),
                speculation=speculation,
                prefill_only=prefill_only,
                pin=pin,
            )
            for number, ((each, i), limit) in enumerate(zip(places, limits, strict=True))
        ]
        self._index = {request.id: number for number, request in enumerate(self.requests)}
        stops = StopStrings(parameters.stop)
        self.committers = [
            Committer(
                service.tokenizer,
                stops=stops,
                stop_ids=service.stop_ids,
                prompt_tokens=len(each.prompt),
                reader=each.reader(request.sampling.seed),
                shown=each.shown,
            )
            for request, (each, _) in zip(self.requests, places, strict=True)
        ]
        self._matches = [PredictionMatch(prediction) for _ in self.requests]
        self.meters = [Meter(service.metrics, protocol, started) for _ in self.requests]
        self._about = {"id": id, "caller": caller.id or None, "name": caller.name or None, "protocol": protocol}
        self._model = service.model_id
        self._finishes: list[Ending] = []
        self._closed = False
        account: Account | None = None
        try:
            self._account = account = Account(caller, sum(len(each.prompt) for each in (prepared, *further)))
            self._stream: Stream = service.streams.open(self.requests)
        except Exception as error:
            if account is not None:
                account.close(ran=False)
            for meter in self.meters:
                meter.end("refused")
            log_event("reply", **self._about, finish="refused", code=as_api_error(error).code)
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
        if delta.tokens or delta.finish == "prefilled":
            self._account.read(delta.cached_tokens, index // self._n)
        self._account.wrote(len(piece.tokens))
        self.meters[index].tokens(len(piece.tokens), delta.queued_ms)
        if piece.cut is not None:
            self._stream.cut(delta.request_id, piece.cut)
        if piece.finish is not None:
            self.meters[index].end(_OUTCOMES.get(piece.finish, "stop"))
            self._finishes.append(piece.finish)
            if len(self._finishes) == len(self.requests):
                self._close()
        return Step(index, piece)

    def abort(self, outcome: Outcome = "cancelled") -> None:
        """Ends what still runs; the engine is free of it within one step. Harmless after the end."""
        self._stream.abort()
        for meter in self.meters:
            meter.end(outcome)
        if not self._closed:
            self._finishes.append("abort")
            self._close()

    def _close(self) -> None:
        """Once, however the reply ended: the caller's account and the line in the log."""
        self._closed = True
        self._account.close()
        usage = self.usage()
        figures = sum((committer.figures for committer in self.committers), SpecFigures()).body()
        log_event(
            "reply",
            **self._about,
            model=self._model,
            prompt_tokens=usage["prompt_tokens"],
            cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],
            output_tokens=usage["completion_tokens"],
            ttft_ms=_rounded(self.meters[0].ttft_ms),
            tpot_ms=_rounded(self.meters[0].tpot_ms),
            finish=",".join(dict.fromkeys(self._finishes)),
            speculation=self.requests[0].speculation.mode,
            mean_accepted=_rounded(figures["mean_acceptance_length"]),
        )

    def usage(self) -> JsonObject:
        """Chat completions' `usage`: a prompt counts once, the choices' tokens add up."""
        usages = [committer.usage for committer in self.committers]
        prompts = [usages[i : i + self._n] for i in range(0, len(usages), self._n)]
        prompt = sum(choices[0].prompt_tokens for choices in prompts)
        cached = sum(max(choice.cached_tokens for choice in choices) for choices in prompts)
        completion = sum(usage.completion_tokens for usage in usages)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
