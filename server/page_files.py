"""Files held ready to be sent: plain and gzipped, under a tag that changes with what is in them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
_TEXTS = (".html", ".js", ".css", ".svg", ".webmanifest")  # the others are compressed by their own formats
KINDS = frozenset(_TYPES)  # the endings of the files a page is made of


@dataclass(frozen=True)
class Answer:
    """What is sent for a request: `headers` in lower case, without the length of `body`, which HTTP's library adds."""

    status: int
    headers: dict[str, str]
    body: bytes


class HeldFile:
    """One file as it was when this was made."""

    def __init__(self, content: bytes, suffix: str, headers: Mapping[str, str]) -> None:
        """`suffix` is one of KINDS; `headers` go out with every answer."""
        tag = hashlib.sha256(content).hexdigest()[:32]
        text = suffix in _TEXTS
        shared = {**headers, **({"vary": "accept-encoding"} if text else {})}
        kind = {"content-type": _TYPES[suffix]}
        # A tag stands for bytes as they are sent, so each encoding has its own (RFC 9110, 8.8.3).
        self._plain = _Form(content, f'"{tag}"', shared, kind)
        self._zipped = None
        if text:
            zipped = gzip.compress(content, mtime=0)
            self._zipped = _Form(zipped, f'"{tag}-gzip"', shared, {**kind, "content-encoding": "gzip"})

    def answer(self, headers: Mapping[str, str]) -> Answer:
        """For a request's headers, whose names are looked up in lower case: 200, or 304 for what the client has."""
        zipped = self._zipped if takes_gzip(headers.get("accept-encoding", "")) else None
        return (zipped or self._plain).answer(headers.get("if-none-match", ""))


@dataclass(frozen=True)
class _Form:
    """A file in one encoding."""

    body: bytes
    tag: str
    shared: dict[str, str]  # headers of 200 and 304
    described: dict[str, str]  # headers of 200 alone

    def answer(self, known: str) -> Answer:
        headers = {**self.shared, "etag": self.tag}
        if known.strip() == "*" or self.tag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
            return Answer(304, headers, b"")
        return Answer(200, {**headers, **self.described}, self.body)


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3): by name, or by `*` where it is not named."""
    weights: dict[str, bool] = {}
    for entry in accepted.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        weights[name] = not any(_is_zero(parameter) for parameter in parameters)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and not value.strip().strip("0.")
