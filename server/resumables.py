"""The replies of one server that can be resumed, and the talks that wait for it without a socket."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from .api_errors import ApiError
from .context import Context
from .fields import JsonObject
from .replay import Resume

if TYPE_CHECKING:
    from .talk import Outlet, Talk


class Resumables:
    """Used on the event loop only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._talks: dict[str, Talk] = {}  # by response id
        self._parked: dict[Talk, asyncio.Task[None]] = {}  # the task ends it in time

    def __len__(self) -> int:
        """Talks that are parked."""
        return len(self._parked)

    def add(self, response_id: str, talk: Talk) -> None:
        self._talks[response_id] = talk

    def forget(self, response_id: str) -> None:
        """Harmless when it is not known."""
        self._talks.pop(response_id, None)

    def find(self, caller_id: str, wanted: Resume) -> tuple[Talk, list[JsonObject]]:
        """The talk, which is not parked any more, and the events that its client missed.

        Raises ApiError (code `response_not_found`) for what there is not, or is another caller's, and as
        `Replay.after` does.
        """
        talk = self._talks.get(wanted.response_id)
        if talk is None or talk.caller_id != caller_id:
            raise ApiError(
                404,
                f"There is no response {wanted.response_id[:80]!r} to resume: it must have been created with x_resume, "
                f"and is kept for {self._context.settings.resume_s:g} seconds after its connection broke.",
                param="response_id",
                code="response_not_found",
            )
        missed = talk.missed(wanted.response_id, wanted.starting_after)
        if (parked := self._parked.pop(talk, None)) is not None:
            parked.cancel()
        return talk, missed

    async def leave(self, talk: Talk, outlet: Outlet, *, parting: bool = False) -> None:
        """The socket of a talk has gone: it is parked if that makes sense, else it ends. parting: see `Talk.detach`."""
        if talk.outlet is not outlet:
            return  # another socket has taken it over
        if not talk.detach(parting) or self._context.drain.requested.is_set():
            await talk.close()
            return
        self._parked[talk] = asyncio.create_task(self._keep(talk))
        occupied = ExitStack()
        occupied.enter_context(self._context.drain.occupied())
        self._parked[talk].add_done_callback(lambda _: occupied.close())
        if len(self._parked) > self._context.settings.max_parked:
            oldest = next(iter(self._parked))
            self._parked.pop(oldest).cancel()
            await oldest.close()

    async def _keep(self, talk: Talk) -> None:
        """Ends a parked talk once its time is over or the server drains: then nobody can come for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._context.settings.resume_s):
                await self._context.drain.requested.wait()
        del self._parked[talk]
        await talk.close()
