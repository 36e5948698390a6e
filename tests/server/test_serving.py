from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from service import ENDLESS, MODEL_ID, live_server, wait_until
from tiny_models import make_folder

from paceline.engine.errors import ConfigError, ModelError
from paceline.server import serving
from paceline.server.context import Settings
from paceline.server.service import Service
from paceline.server.serving import bind, serve, url_of


def test_a_port_in_use_is_one_sentence() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^Port {port} on 127\.0\.0\.1 is already in use; .* --port\.$"):
            bind("127.0.0.1", port)
        with pytest.raises(ConfigError, match=str(port)):
            serve(_never, Settings(), port=port)


def _never() -> Service:
    raise AssertionError("the model must not be loaded when the port is taken")


@pytest.mark.parametrize(
    ("host", "port"), [("no.such.host.invalid", 0), ("203.0.113.1", 0), ("127.0.0.1", 70_000), ("\udcff", 1)]
)
def test_addresses_that_cannot_be_used(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match="--host"):
        bind(host, port)


def test_the_port_is_given_back_when_the_model_fails() -> None:
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]

    def build() -> Service:
        raise ModelError("There is no such model; choose another.")

    with pytest.raises(ModelError):
        serve(build, Settings(), port=port)
    bind("127.0.0.1", port).close()


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("localhost", "http://")]
)
def test_the_address_to_open(host: str, shown: str) -> None:
    with bind(host, 0) as listener:
        assert url_of(listener).startswith(shown)


def test_ready_over_the_network(service: Service) -> None:
    with live_server(service) as live, urllib.request.urlopen(f"{live.url}/ready") as answer:
        assert json.loads(answer.read()) == {"ready": True}
        assert "server" not in {name.lower() for name in answer.headers}


def test_garbage_on_the_port_hurts_nobody(service: Service) -> None:
    with live_server(service) as live:
        for data in (
            b"\x16\x03\x01\x02\x00",
            b"GET\r\n\r\n",
            b"\0" * 10_000,
            b"GET / HTTP/1.1\r\nHost: " + b"x" * 10**6,
        ):
            with socket.create_connection(("127.0.0.1", live.port)) as raw:
                raw.sendall(data)
        with urllib.request.urlopen(f"{live.url}/health") as answer:
            assert answer.status == 200


PROGRAM = """
import sys
from pathlib import Path
from paceline.engine.config import EngineConfig
from paceline.server.context import Settings
from paceline.server.service import Service
from paceline.server.serving import serve
model, cache = Path(sys.argv[1]), Path(sys.argv[2])
serve(
    lambda: Service.build(model, cache, EngineConfig(device="cpu", threads=1), sys.argv[3]),
    Settings(drain_s=30),
    port=0,
    on_ready=lambda url: print(url, flush=True),
)
print("stopped", flush=True)
"""


def test_a_second_ctrl_c_skips_the_waiting(service: Service) -> None:
    with live_server(service) as live:
        live.server.handle_exit(signal.SIGTERM, None)
        assert live.server.should_exit
        assert not live.server.force_exit
        live.server.handle_exit(signal.SIGINT, None)
        assert live.server.force_exit


def test_a_signal_lets_the_reply_finish(tmp_path: Path) -> None:
    model = make_folder(tmp_path / "model", "smollm2", max_position_embeddings=600)
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(model), str(tmp_path), MODEL_ID],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert program.stdout is not None
    assert program.stderr is not None
    try:
        url = program.stdout.readline().strip()
        assert url, program.stderr.read()
        body = {"messages": [{"role": "user", "content": "hi"}], "stream": True, **ENDLESS}
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            answer.readline()
            program.send_signal(signal.SIGTERM)
            rest = answer.read().decode()
        assert rest.endswith("data: [DONE]\n\n")
        wait_until(lambda: program.poll() is not None, 30)
        assert program.stderr.read() == ""
        assert '"finish_reason":"length"' in rest
        assert program.returncode == 0
        assert program.stdout.read() == "stopped\n"
    finally:
        program.kill()
        program.communicate()


def test_as_many_connections_as_the_system_allows() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        serving._raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
