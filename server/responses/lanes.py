"""Who is next: responses of one lane come one after the other, those of different lanes side by side."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..api_errors import ApiError
from .events import ResponseEvents
from .items import Item
from .request import ResponseRequest
from .steering import Steer

MAX_RUNNING = 8  # responses of one socket at once
MAX_WAITING = 16
_REMEMBERED = 64  # responses that have ended


@dataclass(slots=True, kw_only=True)
class Run:
    """A response from the request for it to its end."""

    id: str
    lane: str | None  # None: the one without a name
    request: ResponseRequest
    client_event: str | None
    items: tuple[Item, ...] = ()  # the conversation its prompt holds
    events: ResponseEvents | None = None  # None until generation has started
    steers: list[Steer] = field(default_factory=list)


class Lanes:
    """What runs and waits on one socket."""

    def __init__(self) -> None:
        self._waiting: list[Run] = []
        self._running: dict[str, Run] = {}
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)

    @property
    def idle(self) -> bool:
        return not self._running and not self._waiting

    def require_room(self) -> None:
        """Raises ApiError 429."""
        if len(self._waiting) >= MAX_WAITING:
            raise ApiError(
                429,
                f"{MAX_WAITING} responses wait on this socket; let some of them end first.",
                type="rate_limit_error",
                code="too_many_responses",
            )

    def add(self, run: Run) -> None:
        self._waiting.append(run)

    def add_first(self, run: Run) -> None:
        self._waiting.insert(0, run)

    def next(self) -> Run | None:
        """The run that may begin now, which counts as running from here on: the first whose lane is free."""
        taken = {run.lane for run in self._running.values()}
        run = next((run for run in self._waiting if run.lane not in taken), None)
        if run is None or len(self._running) >= MAX_RUNNING:
            return None
        self._waiting.remove(run)
        self._running[run.id] = run
        return run

    def find(self, response_id: str) -> Run | None:
        """Of those that run."""
        return self._running.get(response_id)

    def running_in(self, lane: str | None) -> Run | None:
        return next((run for run in self._running.values() if run.lane == lane), None)

    def end(self, run: Run) -> None:
        del self._running[run.id]
        self._ended.append(run.id)

    def has_ended(self, response_id: str) -> bool:
        """As far as is remembered."""
        return response_id in self._ended
