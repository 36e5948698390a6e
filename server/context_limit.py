"""How many tokens prompt and reply may have together, and the sentences about it."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.engine.errors import RequestError

_SMALL_CONVERSATION = 512  # tokens: a question or two and their answers


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """set_by: the option that keeps it below what the model was made for, if one does."""

    tokens: int
    set_by: str | None = None

    @property
    def warning(self) -> str | None:
        """One sentence for the operator when an option leaves less room than a small conversation takes."""
        if self.set_by is None or self.tokens >= _SMALL_CONVERSATION:
            return None
        return f"Prompt and reply share a context of only {self.tokens} tokens; raise {self.set_by} for more."

    def refusal(self, size: str, what: str, param: str = "messages") -> RequestError:
        """what: is so long, with its verb, for the message; param: the field it came in."""
        limit = f"maximum context length is {self.tokens} tokens"
        known = f"The {limit}, set by this server's {self.set_by}" if self.set_by else f"This model's {limit}"
        return RequestError(
            f"{known}, and {what} {size}; shorten {param} so that at least one token of reply fits.",
            param=param,
            code="context_length_exceeded",
        )
