from __future__ import annotations

import pytest

from paceline.server.address import DEFAULT_PORT, DEFAULT_URL, Address, AddressError, is_this_machine


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("https://h/v1/", "https://h/v1"),
        ("h:8000", "http://h:8000/v1"),
        ("http://h/proxy", "http://h/proxy/v1"),
        ("wss://h/v1", "https://h/v1"),
        ("[::1]:80", "http://[::1]:80/v1"),
    ],
)
def test_root_is_found_from_any_spelling(url: str, root: str) -> None:
    address = Address.parse(url)
    assert address.api == root
    assert address.realtime("a b/c") == f"ws{root.removeprefix('http')}/realtime?model=a%20b%2Fc"


@pytest.mark.parametrize("url", ["", "ftp://h", "http://", "http://h:99999", "http://h:0", "http://[::1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(
        AddressError, match=f"not the address of a server; write it like http://127.0.0.1:{DEFAULT_PORT}"
    ):
        Address.parse(url)


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("h", False)],
)
def test_which_hosts_are_this_machine(host: str, local: bool) -> None:
    assert is_this_machine(host) == local
    assert Address.parse(f"http://[{host}]" if ":" in host else f"http://{host}").local == local


def test_the_default_is_here() -> None:
    assert Address.parse(DEFAULT_URL).local
    assert DEFAULT_URL.endswith(f":{DEFAULT_PORT}")
