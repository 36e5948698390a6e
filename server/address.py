"""Where a server is: what people write for it, and what is made of that."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from paceline.engine.errors import PacelineError

DEFAULT_PORT = 8377
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"


class AddressError(PacelineError):
    """A text that is no address of a server."""


def is_this_machine(host: str) -> bool:
    """Whether `host` can only be reached from here."""
    return host in ("localhost", "::1") or host.startswith("127.")


@dataclass(frozen=True, slots=True)
class Address:
    """A server's place, whatever protocol it is spoken to in."""

    secure: bool  # TLS
    place: str  # host, port and the path in front of /v1
    local: bool  # on this machine, where no proxy leads

    @classmethod
    def parse(cls, text: str) -> Address:
        """From an address of HTTP or WebSockets, with or without scheme and /v1. Raises AddressError."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            valid = parts.scheme in ("http", "https", "ws", "wss") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise AddressError(f"{text!r} is not the address of a server; write it like {DEFAULT_URL}.")
        path = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.scheme in ("https", "wss"), parts.netloc + path, is_this_machine(parts.hostname or ""))

    @property
    def api(self) -> str:
        """The root of the HTTP interface, without a slash at its end."""
        return f"http{'s' if self.secure else ''}://{self.place}/v1"

    def realtime(self, model: str) -> str:
        """The socket that speaks to `model`."""
        return f"ws{'s' if self.secure else ''}://{self.place}/v1/realtime?model={quote(model, safe='')}"
