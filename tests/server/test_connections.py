"""What the server does with clients that stay silent. Those that do not read: test_realtime_leaving.py."""

from __future__ import annotations

import json
import socket

from raw_sockets import everything
from service import live_server
from websockets.sync.client import connect

from paceline.server.context import Settings
from paceline.server.service import Service


def test_connections_without_a_request_are_closed(service: Service) -> None:
    whole = b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
    upgrade = b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    with (
        live_server(service, Settings(request_patience_s=0.2)) as live,
        connect(f"ws://127.0.0.1:{live.port}/v1/realtime", proxy=None) as session,
    ):
        session.recv()
        for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost:", upgrade, whole + whole[:20]):
            with socket.create_connection(("127.0.0.1", live.port)) as silent:
                silent.sendall(sent)
                assert everything(silent).startswith("HTTP/1.1 200") == sent.startswith(whole)
        session.send("{}")  # a session may be silent for longer
        assert json.loads(session.recv())["type"] == "error"
