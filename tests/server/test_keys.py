from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from paceline.engine.errors import ConfigError
from paceline.server.api_errors import ApiError
from paceline.server.key_file import KeyFile, hash_of, read_keys
from paceline.server.keys import KeyRing
from paceline.server.limits import Allowance


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    file = KeyFile(tmp_path / "keys.json")
    file.add("first", Allowance())
    return file


def test_keys_of_both_kinds(file: KeyFile) -> None:
    key = file.add("anna", Allowance(concurrency=1))
    ring = KeyRing(("sécond", "third", "third"), file.path)
    anna = ring.find(key)
    assert anna is not None
    assert (anna.name, anna.allowance.concurrency) == ("anna", 1)
    assert ring.find(key) is anna
    second, third = ring.find("sécond"), ring.find("third")
    assert second is not None
    assert third is not None
    assert second.id != third.id
    assert second.headers() == {}


@pytest.mark.parametrize("wrong", ["", "first", "pk_", "x" * 10_000, "\ud800", "sécon"])
def test_keys_that_nobody_has(file: KeyFile, wrong: str) -> None:
    ring = KeyRing(("sécond",), file.path)
    assert ring.find(wrong) is None
    (record,) = file.records()
    assert ring.find(record.hash) is None  # whoever reads the file cannot come in with what it says


def test_without_keys_there_is_no_guard(tmp_path: Path) -> None:
    ring = KeyRing()
    assert not ring.guards
    assert ring.guest(None).id == ""
    assert ring.guest("a").id == ring.guest("a").id != ring.guest("b").id
    assert "a" not in ring.guest("a").name
    KeyFile(tmp_path / "k").add("anna", Allowance())
    KeyFile(tmp_path / "k").remove("anna")
    assert KeyRing((), tmp_path / "k").guards  # a file without keys lets nobody in


def test_changes_are_seen_without_a_restart(file: KeyFile) -> None:
    ring = KeyRing((), file.path)
    key = file.add("anna", Allowance(concurrency=1))
    anna = ring.find(key)
    assert anna is not None
    anna.begin()
    body = json.loads(file.path.read_text())
    body["keys"][1] |= {"concurrency": 2, "name": "anne", "priority": "background"}
    file.path.write_text(json.dumps(body))
    anna.begin()  # the same caller, whose replies go on, with its new limits
    assert ring.find(key) is anna
    assert (anna.name, anna.best, anna.running) == ("anne", "background", 2)
    file.remove("anne")
    with pytest.raises(ApiError, match="removed") as caught:
        anna.begin()  # on a socket that was open before
    assert caught.value.status == 401
    assert ring.find(key) is None


def test_a_broken_file_keeps_the_keys_and_is_said_once(file: KeyFile, caplog: pytest.LogCaptureFixture) -> None:
    key = file.add("anna", Allowance())
    whole = file.path.read_bytes()
    ring = KeyRing((), file.path)
    anna = ring.find(key)
    for broken in (whole[:-20], None):
        caplog.clear()
        file.path.unlink() if broken is None else file.path.write_bytes(broken)
        for _ in range(3):
            assert ring.find(key) is anna is not None
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert "keys that were read before hold" in record.getMessage()
        assert "\n" not in record.getMessage()
    file.path.write_bytes(whole)
    file.remove("anna")
    assert ring.find(key) is None


def test_a_broken_file_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="paceline keys add"):
        KeyRing((), tmp_path / "none")


def test_two_thousand_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    salt = bytes(16)
    keys = [f"pk_{i}" for i in range(2000)]
    body = {
        "salt": salt.hex(),
        "keys": [{"id": f"key_{i}", "name": f"n{i}", "hash": hash_of(key, salt)} for i, key in enumerate(keys)],
    }
    path.write_text(json.dumps(body))
    ring = KeyRing((), path)
    found = [ring.find(key) for key in keys]
    assert [holder.name for holder in found if holder is not None] == [f"n{i}" for i in range(2000)]
    assert ring.find("pk_2000") is None
    os.utime(path)  # touched, not changed
    assert ring.find("pk_7") is found[7]
    assert len(read_keys(path).records) == 2000
