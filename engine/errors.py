"""Errors that reach a person: each message is one sentence that says what is wrong and what to do."""


class PacelineError(Exception):
    """Base of every error whose text is meant to be read by a user."""


class ModelError(PacelineError):
    """A model that cannot be found, fetched, read or run."""


class ConfigError(PacelineError):
    """An option whose value cannot work on this machine or with this model."""


class RequestError(PacelineError):
    """A request the engine refuses; `param` names the offending field, `code` is machine readable."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class GrammarError(PacelineError):
    """A reply whose grammar cannot be followed any further; it costs that reply, and no other."""


class OverloadedError(PacelineError):
    """The queue is full; the client should try again later."""
