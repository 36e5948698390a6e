"""A reader of replies for tests: [name|arguments] is a tool call, (text) a thought, all else is for the client."""

from __future__ import annotations

from paceline.server.reply_parts import CallArguments, CallBegin, Part, Thought, Words


class CallReader:
    """Decides character by character, as `PartReader` asks."""

    def __init__(self) -> None:
        self.called = False
        self._calls = 0
        self._mode = self._words
        self._name = ""

    @property
    def thinking(self) -> bool:
        return self._mode == self._thought

    def push(self, text: str) -> list[Part]:
        return [part for char in text for part in self._mode(char)]

    def close(self) -> list[Part]:
        return []

    def _words(self, char: str) -> list[Part]:
        if char == "[":
            self._name, self._mode = "", self._naming
        elif char == "(":
            self._mode = self._thought
        else:
            return [Words(char)]
        return []

    def _thought(self, char: str) -> list[Part]:
        if char == ")":
            self._mode = self._words
            return []
        return [Thought(char)]

    def _naming(self, char: str) -> list[Part]:
        if char != "|":
            self._name += char
            return []
        self._calls += 1
        self._mode = self._arguments
        return [CallBegin(self._calls - 1, f"call_{self._calls}", self._name)]

    def _arguments(self, char: str) -> list[Part]:
        if char == "]":
            self.called = True
            self._mode = self._words
            return []
        return [CallArguments(self._calls - 1, char)]
