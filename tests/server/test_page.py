from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from paceline.server.page import is_built, page_files, page_routes

POLICY = {
    "default-src": "'none'",
    **dict.fromkeys(("script-src", "style-src", "img-src", "font-src"), "'self'"),
    **dict.fromkeys(("connect-src", "manifest-src", "worker-src"), "'self'"),
    **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
    "require-trusted-types-for": "'script'",
    "trusted-types": "dompurify paceline-worker",
}
FILES = ("index.html", "sw.js", "icon.svg", "manifest.webmanifest", "assets/main-a1b2.js", "assets/main-a1b2.css")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "assets").mkdir(parents=True)
    for name in (*FILES, "__init__.py", "notes.txt"):
        (folder / name).write_text(f"this is {name}", encoding="utf-8")
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    return folder


@pytest.fixture
def page(folder: Path) -> TestClient:
    return client_of(folder)


def client_of(folder: Path) -> TestClient:
    return TestClient(Starlette(routes=page_routes(folder)))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/sw.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
        ("/assets/main-a1b2.js", "text/javascript; charset=utf-8"),
        ("/assets/main-a1b2.css", "text/css; charset=utf-8"),
    ],
)
def test_files_have_their_types_and_strict_headers(page: TestClient, path: str, kind: str) -> None:
    answer = page.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.text == f"this is {path.removeprefix('/') or 'index.html'}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy == POLICY
    abilities = dict(part.split("=") for part in answer.headers["permissions-policy"].split(", "))
    assert {name for name, who in abilities.items() if who != "()"} == {"microphone", "clipboard-write"}
    head = page.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]


@pytest.mark.parametrize("path", ["/__init__.py", "/notes.txt", "/secret.js", "/../secret.js", "/%2e%2e/secret.js"])
def test_nothing_else_is_served(page: TestClient, path: str) -> None:
    assert page.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/assets", "/assets/", "/assets/main-0000.js", "/index.html", "/race"])
def test_there_are_no_other_addresses(page: TestClient, path: str) -> None:
    assert page.get(path).status_code == 404


def test_what_carries_a_hash_is_kept_for_good_and_the_rest_is_asked_for_again(page: TestClient, folder: Path) -> None:
    caching = {path: page.get(path).headers["cache-control"] for path in page_files(folder)}
    assert len(caching) == len(FILES)
    assert {path for path, said in caching.items() if "immutable" in said} == {
        "/assets/main-a1b2.js",
        "/assets/main-a1b2.css",
    }
    assert {said for said in caching.values() if "immutable" not in said} == {"no-cache"}


def test_a_browser_that_has_a_file_is_told_so(page: TestClient) -> None:
    for encoding in ("gzip", "identity"):
        first = page.get("/", headers={"accept-encoding": encoding})
        assert first.text == "this is index.html"
        again = page.get("/", headers={"accept-encoding": encoding, "if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-type" not in again.headers
        assert again.headers["content-security-policy"] == first.headers["content-security-policy"]


def test_a_page_is_built_once_its_first_file_is_there(folder: Path, tmp_path: Path) -> None:
    assert is_built(folder)
    assert not is_built(tmp_path)


def test_a_running_server_sends_what_was_there_at_its_start(page: TestClient, folder: Path) -> None:
    (folder / "assets" / "main-a1b2.js").unlink()
    (folder / "index.html").write_text("new", encoding="utf-8")
    assert page.get("/").text == "this is index.html"
    assert page.get("/assets/main-a1b2.js").text == "this is assets/main-a1b2.js"
    assert client_of(folder).get("/").text == "new"


@pytest.mark.parametrize("half_built", [False, True])
def test_without_a_built_page_its_address_says_how_to_get_it(tmp_path: Path, half_built: bool) -> None:
    if half_built:
        (tmp_path / "assets").mkdir()
        (tmp_path / "assets" / "main-a1b2.js").touch()
    assert page_files(tmp_path) == {}
    page = client_of(tmp_path)
    answer = page.get("/")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/plain")
    assert "make page" in answer.text
    assert "start the server again" in answer.text
    assert str(tmp_path) not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert page.get("/assets/main-a1b2.js").status_code == 404


def test_all_of_the_real_page_is_light() -> None:
    """What a browser ever loads for all of its views, compressed as it is sent."""
    files = page_files()
    if not files:
        pytest.skip("The page is not built; with Node 20.19 or newer (of 22, 22.12): make page")
    assert {"/", "/sw.js", "/icon.svg", "/manifest.webmanifest"} <= files.keys()
    assert any(path.startswith("/assets/") and path.endswith(".js") for path in files)
    sizes = {path: len(file.answer({"accept-encoding": "gzip"}).body) for path, file in files.items()}
    assert sum(sizes.values()) <= 250_000, sizes
