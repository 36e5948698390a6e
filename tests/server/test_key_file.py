from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paceline.engine.errors import ConfigError
from paceline.server.key_file import KeyFile, hash_of, read_keys
from paceline.server.limits import Allowance


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "new" / "keys.json")


def test_a_key_is_shown_once_and_kept_nowhere(file: KeyFile) -> None:
    key = file.add("anna", Allowance(concurrency=2, tokens_per_minute=900, priority="background"))
    assert len(key) > 43  # 256 bits in base 64
    assert key not in file.path.read_text()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    keys = read_keys(file.path)
    (record,) = keys.records
    assert (record.name, record.hash) == ("anna", hash_of(key, keys.salt))
    assert record.allowance == Allowance(concurrency=2, tokens_per_minute=900, priority="background")
    assert record.created > 1.7e9


def test_two_files_hash_the_same_key_differently(tmp_path: Path) -> None:
    salts = set()
    for name in ("a", "b"):
        KeyFile(tmp_path / name).add("anna", Allowance())
        salts.add(read_keys(tmp_path / name).salt)
    assert len({hash_of("key", salt) for salt in salts}) == 2


def test_removing_by_name_or_id(file: KeyFile) -> None:
    for name in ("anna", "bert", "carl"):
        file.add(name, Allowance())
    file.remove("bert")
    file.remove(file.records()[0].id)
    assert [record.name for record in file.records()] == ["carl"]
    with pytest.raises(ConfigError, match=r"^There is no key 'dora' in .*`paceline keys list`\.$"):
        file.remove("dora")


def test_many_hands_at_once_lose_nothing(file: KeyFile) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda i: file.add(f"n{i}", Allowance()), range(16)))
    assert len(set(keys)) == 16
    assert {record.name for record in file.records()} == {f"n{i}" for i in range(16)}
    assert {path.name for path in file.path.parent.iterdir()} <= {"keys.json", "keys.json.lock"}


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a\nb", "a=b"])
def test_names_that_logs_could_not_show(file: KeyFile, name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a key"):
        file.add(name, Allowance())


def test_a_name_is_given_once(file: KeyFile) -> None:
    file.add("anna", Allowance())
    with pytest.raises(ConfigError, match="'anna' already"):
        file.add("anna", Allowance())


def entry(**changes: Any) -> dict[str, Any]:
    return {"id": "key_1", "name": "anna", "hash": "0" * 64, "created": 1, **changes}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"\xff\xfe", "not valid JSON"),
        ({"keys": []}, "salt must be"),
        ({"salt": "00", "keys": []}, "salt must be"),
        ({"salt": "0" * 32}, "keys is missing"),
        ({"salt": "0" * 32, "keys": {}}, "keys must be a list"),
        ({"salt": "0" * 32, "keys": [1]}, r"keys\[0\] must be an object"),
        ({"salt": "0" * 32, "keys": [entry(hash="0" * 63)]}, r"keys\[0\]\.hash"),
        ({"salt": "0" * 32, "keys": [entry(name="a b")]}, r"keys\[0\]\.name"),
        ({"salt": "0" * 32, "keys": [entry(concurrency=0)]}, r"keys\[0\]\.concurrency must be at least 1"),
        ({"salt": "0" * 32, "keys": [entry(tokens_per_minute="9")]}, r"keys\[0\]\.tokens_per_minute"),
        ({"salt": "0" * 32, "keys": [entry(priority="urgent")]}, r"keys\[0\]\.priority must be one of"),
        ({"salt": "0" * 32, "keys": [entry(), entry(id="b", hash="1" * 64)]}, "same name"),
    ],
)
def test_broken_files_are_one_sentence_and_never_overwritten(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    before = path.read_bytes()
    for change in (lambda: KeyFile(path).add("new", Allowance()), lambda: KeyFile(path).remove("anna")):
        with pytest.raises(ConfigError, match=rf"^The keys in .* are broken: .*{words}.*\.$"):
            change()
    assert path.read_bytes() == before


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="make one with `paceline keys add NAME`"):
        read_keys(tmp_path / "none")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keys(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        KeyFile(tmp_path / "file" / "keys").add("anna", Allowance())
