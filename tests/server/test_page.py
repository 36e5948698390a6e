from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from paceline.server.page import WEB, page_routes


@pytest.fixture
def page(tmp_path: Path) -> TestClient:
    folder = tmp_path / "web"
    (folder / "parts").mkdir(parents=True)
    for name in ("index.html", "main.js", "style.css", "icon.svg", "parts/view.js", "__init__.py", "notes.txt"):
        (folder / name).write_text(f"this is {name}", encoding="utf-8")
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    return TestClient(Starlette(routes=page_routes(folder)))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/main.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/parts/view.js", "text/javascript; charset=utf-8"),
    ],
)
def test_files_have_their_types_and_strict_headers(page: TestClient, path: str, kind: str) -> None:
    answer = page.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self';" in policy
    assert answer.text == f"this is {path.removeprefix('/') or 'index.html'}"


@pytest.mark.parametrize(
    "path", ["/__init__.py", "/notes.txt", "/secret.js", "/../secret.js", "/%2e%2e/secret.js", "/parts", "/index.html"]
)
def test_nothing_else_is_served(page: TestClient, path: str) -> None:
    assert page.get(path).status_code == 404


def test_a_changed_file_is_seen_at_once(page: TestClient, tmp_path: Path) -> None:
    (tmp_path / "web" / "main.js").write_text("new", encoding="utf-8")
    assert page.get("/main.js").text == "new"
    assert page.get("/main.js").headers["cache-control"] == "no-cache"


def test_the_real_page_is_there() -> None:
    assert "/" in {route.path for route in page_routes(WEB)}
