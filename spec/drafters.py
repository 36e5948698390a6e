"""All drafters of a process behind one face: each request names the one it wants, or leaves the choice to us."""

from __future__ import annotations

from collections.abc import Sequence

from .nothing import Nothing
from .proposer import Ask, Proposal, Proposer, Verdict

AUTO = "auto"


class Drafters:
    """Routes each ask to the drafter its request named. `auto` stands for the first one given.

    Raises KeyError for a mode that is neither "auto", "none" nor a loaded drafter.
    """

    def __init__(self, proposers: Sequence[Proposer] = ()) -> None:
        loaded: list[Proposer] = [*proposers, Nothing()]
        self._by_mode: dict[str, Proposer] = {AUTO: loaded[0]} | {proposer.name: proposer for proposer in loaded}
        self._loaded = loaded

    @property
    def modes(self) -> tuple[str, ...]:
        """What a request may ask for."""
        return tuple(self._by_mode)

    def drafts(self, mode: str) -> bool:
        """Whether this mode ever guesses."""
        return not isinstance(self._by_mode[mode], Nothing)

    def propose(self, asks: Sequence[Ask], modes: Sequence[str]) -> list[Proposal]:
        """One proposal per ask, in order; each drafter is called once, with all of its asks."""
        proposals: dict[int, Proposal] = {}
        for proposer in self._loaded:
            mine = [i for i, mode in enumerate(modes) if self._by_mode[mode] is proposer]
            if mine:
                proposals.update(zip(mine, proposer.propose([asks[i] for i in mine]), strict=True))
        return [proposals[i] for i in range(len(asks))]

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for proposer in self._loaded:
            proposer.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        for proposer in self._loaded:
            proposer.forget(seq_id)
