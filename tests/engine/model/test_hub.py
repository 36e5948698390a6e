"""Hub ids, against a small local server that speaks the part of the hub's protocol the client uses."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_models import make_folder

_COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _handler(repositories: dict[str, Path]) -> type[BaseHTTPRequestHandler]:
    class Hub(BaseHTTPRequestHandler):
        """GET /api/models/ID/revision/REV, /api/models/ID/tree/COMMIT and /ID/resolve/COMMIT/FILE."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/")
            api = path.startswith("api/models/")
            pieces = path.removeprefix("api/models/").split("/")
            folder = repositories.get("/".join(pieces[:2]))
            if folder is None:
                return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            files = sorted(folder.iterdir())
            if api and pieces[2] == "tree":
                listing = [
                    {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": _etag(f.read_bytes())}
                    for f in files
                ]
                return self._send(200, json.dumps(listing).encode())
            if api:
                siblings = [{"rfilename": f.name} for f in files]
                info = {"id": "/".join(pieces[:2]), "sha": _COMMIT, "siblings": siblings}
                return self._send(200, json.dumps(info).encode())
            data = (folder / pieces[-1]).read_bytes()
            return self._send(200, data, {"ETag": f'"{_etag(data)}"', "X-Repo-Commit": _COMMIT})

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Hub


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    repositories = {"org/tiny": make_folder(tmp_path / "served", "qwen2", shards=2), "org/gguf": tmp_path / "other"}
    repositories["org/gguf"].mkdir()
    (repositories["org/gguf"] / "model.gguf").write_bytes(b"GGUF")
    (repositories["org/tiny"] / "pytorch_model.bin").write_bytes(b"not wanted")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repositories))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


# In its own process, since the client reads its environment once, at import.
_PROGRAM = """
import json, sys
from pathlib import Path
from paceline.engine.errors import ModelError
from paceline.engine.model.sources import resolve
seen = []
try:
    folder = resolve(sys.argv[1], Path(sys.argv[2]), lambda *progress: seen.append(progress))
    result = {"files": sorted(p.name for p in folder.iterdir())}
except ModelError as error:
    result = {"error": str(error)}
print(json.dumps({**result, "seen": seen}))
"""


def _resolve(name: str, home: Path, endpoint: str, **extra: str) -> dict[str, object]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    environment |= {"PYTHONSAFEPATH": "1", "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, name, str(home)],
        env=environment | extra,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_a_snapshot_is_fetched_once_then_used_offline(hub: str, tmp_path: Path) -> None:
    first = _resolve("org/tiny", tmp_path / "home", hub)
    assert first["files"] == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    seen = first["seen"]
    assert isinstance(seen, list)
    assert seen
    assert all(stage == "download" for stage, _, _ in seen)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    again = _resolve("org/tiny", tmp_path / "home", "http://127.0.0.1:9")
    assert again["files"] == first["files"]
    assert again["seen"] == []


@pytest.mark.parametrize("listed", [True, False])
def test_an_incomplete_snapshot_is_completed(listed: bool, hub: str, tmp_path: Path) -> None:
    first = _resolve("org/tiny", tmp_path / "home", hub)
    (shard,) = (tmp_path / "home").rglob("snapshots/*/model-00002*")
    shard.resolve().unlink()
    shard.unlink()
    if not listed:  # an older client's download: nothing says which files there should be
        for trees in (tmp_path / "home").rglob("trees"):
            shutil.rmtree(trees)
    assert _resolve("org/tiny", tmp_path / "home", hub)["files"] == first["files"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("org/none", ["no folder org/none here", "no public model"]),
        ("org/gguf", ["org/gguf has no config.json", ".gguf"]),
    ],
)
def test_what_the_hub_does_not_have(name: str, words: list[str], hub: str, tmp_path: Path) -> None:
    error = str(_resolve(name, tmp_path / "home", hub)["error"])
    assert all(word in error for word in words), error
    assert "\n" not in error


@pytest.mark.parametrize("extra", [{}, {"HF_HUB_OFFLINE": "1"}])
def test_no_network(extra: dict[str, str], tmp_path: Path) -> None:
    error = str(_resolve("org/tiny", tmp_path / "home", "http://127.0.0.1:9", **extra)["error"])
    assert "org/tiny is not on this machine yet and the hub cannot be reached" in error


def test_an_id_that_cannot_be(hub: str, tmp_path: Path) -> None:
    assert "is not valid" in str(_resolve("org/tiny--x..y", tmp_path / "home", hub)["error"])
