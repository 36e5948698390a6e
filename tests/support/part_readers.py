"""A reader that finds every kind of part in any text: what a tiny random model writes is no tool call."""

from __future__ import annotations

from paceline.server.reply_parts import CallArguments, CallBegin, Part, Thought, Words

RUN = 5  # characters


class EveryKind:
    """A thought, words, a call, another call, and again, for `RUN` characters each: decided character by character."""

    over = False

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._read = 0
        self._calls = 0

    @property
    def called(self) -> bool:
        """The call's last character was read."""
        return self._read >= 3 * RUN

    @property
    def thinking(self) -> bool:
        return self._read // RUN % 4 == 0

    def push(self, text: str) -> list[Part]:
        return [part for character in text for part in self._one(character)]

    def _one(self, character: str) -> list[Part]:
        run, place = divmod(self._read, RUN)
        self._read += 1
        if run % 4 < 2:
            return [Words(character) if run % 4 else Thought(character)]
        self._calls += place == 0
        index = self._calls - 1
        begin: list[Part] = [CallBegin(index, f"call_{self._seed}_{index}", "look_up")] if place == 0 else []
        return [*begin, CallArguments(index, character)]

    def close(self) -> list[Part]:
        return []
