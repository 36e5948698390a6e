"""The browser page: the files of web/, as they lie there, with headers that let them load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

WEB = Path(__file__).parent.parent / "web"

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

# 'self' covers the socket to this very server in every current browser (Chrome 71, Firefox 50, Safari 16); `ws:` would
# open a way to any other.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


def page_routes(folder: Path = WEB) -> list[Route]:
    """One route for each file there is now, so that no request names a path of the file system."""
    return list(_routes(folder))


def _routes(folder: Path) -> Iterator[Route]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            name = path.relative_to(folder).as_posix()
            yield Route("/" if name == "index.html" else f"/{name}", _endpoint(path), methods=["GET"])


def _endpoint(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def send_file(request: Request) -> Response:
        return Response(path.read_bytes(), headers=_HEADERS, media_type=_TYPES[path.suffix])

    return send_file
