"""The file of keys: names, limits and salted hashes, never the keys themselves.

A key is 256 random bits, made here and shown once. One round of SHA-256 is enough to keep it: nobody can guess it from
its hash, however fast hashes are computed. (Slow hashes such as scrypt protect what people choose; people choose no key
of this file.) The salt is the file's, so that a key is found by one hash, whatever the number of keys; without it
nobody outside can tell what its keys hash to, so neither the look-up nor its time says which exist.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from paceline.engine.errors import ConfigError, RequestError
from paceline.engine.request import PRIORITY_ORDER

from .fields import Fields, JsonObject, parse_object
from .limits import Allowance

_PREFIX = "pk_"  # says what it is to whoever finds one lying around
_NAME = re.compile(r"[\w.@-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_SALT_BYTES = 16
_LOCK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """One key of the file."""

    id: str
    name: str
    hash: str  # of salt and key, in hex
    created: int  # Unix time
    allowance: Allowance

    def body(self) -> JsonObject:
        limits = {name: value for name, value in asdict(self.allowance).items() if value is not None}
        return {"id": self.id, "name": self.name, "hash": self.hash, "created": self.created, **limits}


@dataclass(frozen=True, slots=True)
class Keys:
    """What the file holds."""

    salt: bytes
    records: tuple[KeyRecord, ...]


def hash_of(key: str, salt: bytes) -> str:
    return hashlib.sha256(salt + key.encode(errors="surrogatepass")).hexdigest()


def read_keys(path: Path) -> Keys:
    """Raises ConfigError, in one sentence, for a file that is missing or broken."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"There is no file of keys at {path}; make one with `paceline keys add NAME`.") from None
    except OSError as error:
        raise ConfigError(
            f"The keys in {path} cannot be read ({error.strerror}); allow it, or choose another."
        ) from None
    try:
        return _parse(data)
    except RequestError as error:
        raise ConfigError(
            f"The keys in {path} are broken: {str(error).rstrip('.')}; repair the file or restore it."
        ) from None


class KeyFile:
    """Changes to the file: one at a time, whole or not at all, and only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> tuple[KeyRecord, ...]:
        """Raises ConfigError."""
        return read_keys(self.path).records

    def add(self, name: str, allowance: Allowance) -> str:
        """A new key, which is kept nowhere. Makes the file when it is missing. Raises ConfigError."""
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name[:80]!r} is no name for a key; use up to 64 letters, digits and . _ @ -.")
        with self._locked():
            keys = read_keys(self.path) if self.path.exists() else Keys(secrets.token_bytes(_SALT_BYTES), ())
            if any(record.name == name for record in keys.records):
                raise ConfigError(f"There is a key {name!r} already; choose another name, or remove that one first.")
            key = _PREFIX + secrets.token_urlsafe(32)
            record = KeyRecord(
                id=f"key_{secrets.token_hex(8)}",
                name=name,
                hash=hash_of(key, keys.salt),
                created=int(time.time()),
                allowance=allowance,
            )
            self._write(Keys(keys.salt, (*keys.records, record)))
        return key

    def remove(self, name: str) -> None:
        """By name or id. Raises ConfigError when there is none."""
        with self._locked():
            keys = read_keys(self.path)
            kept = tuple(record for record in keys.records if name not in (record.name, record.id))
            if len(kept) == len(keys.records):
                raise ConfigError(f"There is no key {name[:80]!r} in {self.path}; see `paceline keys list`.")
            self._write(Keys(keys.salt, kept))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout  # a server only reads

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_S):
                yield
        except Timeout:
            raise ConfigError(f"Another program is changing {self.path}; try again when it is done.") from None
        except OSError as error:
            raise ConfigError(
                f"The keys in {self.path} cannot be written ({error.strerror}); allow it, or choose another file."
            ) from None

    def _write(self, keys: Keys) -> None:
        body = {"salt": keys.salt.hex(), "keys": [record.body() for record in keys.records]}
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")  # with mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _parse(data: bytes) -> Keys:
    """Raises RequestError that names the field."""
    fields = Fields(parse_object(data, "The file"))
    salt = fields.string("salt") or ""
    if not re.fullmatch(r"([0-9a-f]{2}){8,64}", salt):
        fields.refuse("salt", "must be 8 to 64 bytes in hex.")
    if fields.array("keys") is None:
        fields.refuse("keys", "is missing; it must be a list.")
    records = tuple(_record(entry) for entry in fields.each("keys"))
    for what in ("id", "name", "hash"):
        if len({getattr(record, what) for record in records}) < len(records):
            fields.refuse("keys", f"has two entries with the same {what}.")
    return Keys(bytes.fromhex(salt), records)


def _record(entry: Fields) -> KeyRecord:
    def text(key: str, pattern: re.Pattern[str], what: str) -> str:
        value = entry.string(key) or ""
        if not pattern.fullmatch(value):
            entry.refuse(key, f"must be {what}.")
        return value

    best: Any = entry.choice("priority", PRIORITY_ORDER) or "interactive"
    return KeyRecord(
        id=text("id", _NAME, "a short name"),
        name=text("name", _NAME, "a short name"),
        hash=text("hash", _HASH, "a SHA-256 in hex"),
        created=entry.integer("created", low=0) or 0,
        allowance=Allowance(
            concurrency=entry.integer("concurrency", low=1),
            tokens_per_minute=entry.integer("tokens_per_minute", low=1),
            priority=best,
        ),
    )
