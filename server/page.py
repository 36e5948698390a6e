"""The browser page: the files that were built into web/dist, with headers that let them load nothing from elsewhere.

They are read once. A page and its parts belong together: one that is built anew comes with the next start, whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .page_files import KINDS, HeldFile

DIST = Path(__file__).parent.parent / "web" / "dist"
ASSETS = "/assets/"  # what lies below carries a hash of its content in its name

# Those who may hand strings to the browser that it would run or load: the sanitiser of Markdown, and whoever registers
# the service worker (web/src/offline/register.ts).
_TRUSTED = ("dompurify", "paceline-worker")

# 'self' covers the socket to this very server in every current browser (Chrome 71, Firefox 50, Safari 16); `ws:` would
# open a way to any other.
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "worker-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": " ".join(_TRUSTED),
}

# The microphone is for the voice view, the clipboard for the copy buttons.
_ABILITIES = {
    "microphone": "(self)",
    "clipboard-write": "(self)",
    **dict.fromkeys(
        (
            *("accelerometer", "camera", "clipboard-read", "display-capture", "encrypted-media", "geolocation"),
            *("gyroscope", "hid", "idle-detection", "magnetometer", "midi", "payment", "picture-in-picture"),
            *("publickey-credentials-get", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking"),
        ),
        "()",
    ),
}

_HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "permissions-policy": ", ".join(f"{name}={value}" for name, value in _ABILITIES.items()),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"

_UNBUILT = (
    "The page is not built, though the API is served: install Node 20.19 or newer (of 22, 22.12), run `make page` "
    "where Paceline was installed from, and start the server again.\n"
)


def page_files(folder: Path = DIST) -> Mapping[str, HeldFile]:
    """The built page by the paths of its addresses, `/` among them; empty where it is not built.

    A path that is not a key is no file, so that no request names a path of the file system.
    """
    if not is_built(folder):
        return {}
    return {
        _address(path.relative_to(folder)): _held(path, path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.suffix in KINDS and path.is_file()
    }


def is_built(folder: Path = DIST) -> bool:
    """Whether there is a page to send."""
    return (folder / "index.html").is_file()


def _address(name: Path) -> str:
    return "/" if name == Path("index.html") else f"/{name.as_posix()}"


def _held(path: Path, name: Path) -> HeldFile:
    lasts = _address(name).startswith(ASSETS)
    return HeldFile(path.read_bytes(), path.suffix, {**_HEADERS, "cache-control": _FOR_GOOD if lasts else _ASK_AGAIN})


def page_routes(folder: Path = DIST) -> list[Route]:
    """A route for each file of the page; where it is not built, `/` says how to get it."""
    files = page_files(folder)
    if not files:
        return [Route("/", _say_unbuilt, methods=["GET"])]
    return [Route(address, _endpoint(file), methods=["GET"]) for address, file in files.items()]


def _endpoint(file: HeldFile) -> Callable[[Request], Awaitable[Response]]:
    async def send_file(request: Request) -> Response:
        answer = file.answer(request.headers)
        return Response(answer.body, answer.status, answer.headers)

    return send_file


async def _say_unbuilt(request: Request) -> Response:
    return PlainTextResponse(_UNBUILT, 404, {**_HEADERS, "cache-control": "no-store"})
