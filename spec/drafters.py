"""All drafters of a process behind one face: each request names the one it wants, or takes what all of them find."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from .merge import NO_GUESSES, Guesses, merge
from .proposer import Ask, Proposal, Proposer, Verdict
from .prune import prune

_log = logging.getLogger(__name__)

AUTO, NONE = "auto", "none"  # all drafters together; plain decoding, through the same path as everything else

Pays = Callable[[str, float, Sequence[int], Sequence[Guesses]], bool]
"""(drafter, its cost in ms, the asks it would answer, what all asks have so far) -> whether to ask it."""


@runtime_checkable
class Timed(Protocol):
    """A drafter that measures what it takes."""

    def restart(self) -> None:
        """Forget what was measured: it held what is done once."""
        ...


class Drafters:
    """Routes each ask to the drafter its request named; `auto` stands for all of them together.

    Guesses never decide text, so a drafter that raises costs nobody a reply: it is left out from then on, and requests
    that name it get plain decoding. Raises KeyError for a mode that is neither "auto", "none" nor a loaded drafter.
    """

    def __init__(self, proposers: Sequence[Proposer] = ()) -> None:
        self._loaded = tuple(proposers)
        self._by_mode: dict[str, tuple[Proposer, ...]] = {
            AUTO: self._loaded,
            **{proposer.name: (proposer,) for proposer in self._loaded},
            NONE: (),
        }

    @property
    def modes(self) -> tuple[str, ...]:
        """What a request may ask for."""
        return tuple(self._by_mode)

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that are asked."""
        return tuple(each.name for each in self._loaded)

    def needs_hidden(self, mode: str) -> bool:
        """Whether a drafter of this mode reads the model's hidden states."""
        return any(each.needs_hidden for each in self._by_mode[mode])

    def drafts(self, mode: str) -> bool:
        """Whether this mode may still guess."""
        return bool(self._by_mode[mode])

    def propose(self, asks: Sequence[Ask], modes: Sequence[str], pays: Pays) -> list[Guesses]:
        """What the asks' drafters guess, in their order. Each drafter is called once at most, with all of its asks: the
        free ones first, then, knowing what these found, those that cost time, the cheapest first, if it pays. Guesses
        that an ask's constraint does not allow, or that stand behind the end of its reply, are left out.
        """
        wanted = [self._by_mode[mode] for mode in modes]
        proposals: list[list[Proposal]] = [[] for _ in asks]
        guesses = [NO_GUESSES] * len(asks)
        waiting: list[tuple[float, Proposer, list[int]]] = []
        for proposer in self._loaded:
            mine = [i for i, drafters in enumerate(wanted) if proposer in drafters]
            if mine:
                with self._spared(proposer):
                    waiting.append((proposer.cost_ms([asks[i] for i in mine]), proposer, mine))
        waiting.sort(key=lambda entry: entry[0])
        for place, (cost_ms, proposer, mine) in enumerate(waiting):
            if cost_ms > 0:
                if len(mine) > 1:  # those it does nothing for bring nothing either
                    with self._spared(proposer):
                        mine = [i for i in mine if proposer.cost_ms([asks[i]]) > 0]
                if not pays(proposer.name, cost_ms, mine, guesses):
                    continue
            with self._spared(proposer):
                for i, proposal in zip(mine, proposer.propose([asks[i] for i in mine]), strict=True):
                    proposals[i].append(proposal)
            if cost_ms > 0 or place + 1 == len(waiting) or waiting[place + 1][0] > 0:
                guesses = [
                    prune(merge(found), ask.constraint, ask.stop_ids)
                    for found, ask in zip(proposals, asks, strict=True)
                ]
        return guesses

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for proposer in self._loaded:
            with self._spared(proposer):
                proposer.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        for proposer in self._loaded:
            with self._spared(proposer):
                proposer.forget(seq_id)

    def restart(self) -> None:
        """Forget how long drafting took so far."""
        for proposer in self._loaded:
            if isinstance(proposer, Timed):
                proposer.restart()

    @contextmanager
    def _spared(self, proposer: Proposer) -> Iterator[None]:
        """Whatever the drafter raises in here is its end, and nobody else's."""
        try:
            yield
        except Exception:
            _log.exception("The drafter %s failed and is not asked any more; replies go on without it.", proposer.name)
            self._loaded = tuple(each for each in self._loaded if each is not proposer)
            for mode, mine in self._by_mode.items():
                self._by_mode[mode] = tuple(each for each in mine if each is not proposer)
