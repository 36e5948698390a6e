"""From a request of the Responses API to a running generation."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.engine.errors import RequestError

from ..caller import Caller
from ..generation import Generation
from ..prepared import Prepared
from ..service import Service
from .items import Item, Message, messages_of
from .request import ResponseRequest

TOO_LONG = "context_length_exceeded"


async def start(
    service: Service,
    request: ResponseRequest,
    items: Sequence[Item],
    *,
    id: str,  # noqa: A002 - the response's id on the wire
    caller: Caller,
    started: float,
    pin: str = "",
) -> tuple[Generation, tuple[Item, ...]]:
    """The generation and the items its prompt holds: all of `items`, or with `truncation` "auto" the newest.

    items: the whole conversation. Raises RequestError, OverloadedError or ApiError.
    """
    prepared, kept = await _prepare(service, request, tuple(items), caller)
    generation = Generation(
        service,
        id=id,
        prepared=prepared,
        parameters=request.parameters,
        protocol="responses" if request.generate else "prefill",
        started=started,
        caller=caller,
        pin=pin,
        prefill_only=not request.generate,
    )
    return generation, kept


async def _prepare(
    service: Service, request: ResponseRequest, items: tuple[Item, ...], caller: Caller
) -> tuple[Prepared, tuple[Item, ...]]:
    async def attempt(kept: tuple[Item, ...]) -> Prepared:
        return await service.prepare(messages_of(request.instructions, kept), request.parameters, caller)

    try:
        return await attempt(items), items
    except RequestError as error:
        if error.code != TOO_LONG or not request.truncate:
            raise _of_input(error) from None
        refusal = error
    turns = [i for i, item in enumerate(items) if i and isinstance(item, Message) and item.role == "user"]
    found: tuple[Prepared, tuple[Item, ...]] | None = None
    low, high = 0, len(turns)  # turns[high:] fit, as far as is known; turns[:low] do not
    while low < high:
        middle = (low + high) // 2
        kept = items[turns[middle] :]
        try:
            found, high = (await attempt(kept), kept), middle
        except RequestError as error:
            if error.code != TOO_LONG:
                raise _of_input(error) from None
            low = middle + 1
    if found is None:
        raise _of_input(refusal)
    return found


def _of_input(error: RequestError) -> RequestError:
    """The conversation is called `messages` elsewhere."""
    return RequestError(str(error), param="input", code=error.code) if error.param == "messages" else error
