"""Requests written byte by byte, for clients that leave, stall or never read."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from chat_completions import CHAT, HI
from realtime_client import user
from service import ENDLESS

PING = b"\x89\x80" + bytes(4)  # an empty one, masked


def raw_request(port: int, stream: bool, **body: Any) -> socket.socket:
    """Asks for a chat completion that only the context ends, and reads nothing of it."""
    content = json.dumps({"messages": HI, "stream": stream, **ENDLESS, **body}).encode()
    connection = socket.create_connection(("127.0.0.1", port))
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    connection.sendall(f"{head}\r\n\r\n".encode() + content)
    return connection


def upgrade(port: int, path: str = "/v1/realtime") -> socket.socket:
    """A WebSocket by hand, up to the end of the server's handshake."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", port))
    raw.sendall(
        f"GET {path} HTTP/1.1\r\n".encode() + b"Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    raw.settimeout(20)
    assert raw.recv(12) == b"HTTP/1.1 101"
    return raw


def frame(text: str) -> bytes:
    """A WebSocket text frame, as a client must send it."""
    data = text.encode()
    head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + struct.pack(">H", len(data))
    return head + bytes(4) + data  # masked with zeros


def ask_endlessly(port: int) -> socket.socket:
    """A realtime session whose reply only the context ends."""
    raw = upgrade(port)
    raw.sendall(frame(json.dumps({"type": "response.create", "response": {"input": [user("hi")], **ENDLESS}})))
    return raw


def everything(connection: socket.socket, end: bytes | None = None) -> str:
    """What the server sends until it closes, or until `end`."""
    return all_bytes(connection, end).decode()


def all_bytes(connection: socket.socket, end: bytes | None = None) -> bytes:
    """The same, of a protocol that is not text. Raises ConnectionError where the connection is reset."""
    connection.settimeout(30)
    data = b""
    while (end is None or end not in data) and (part := connection.recv(65536)):
        data += part
    return data


def reset(raw: socket.socket) -> None:
    """Close without a goodbye."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()
