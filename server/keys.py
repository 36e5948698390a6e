"""Who holds a key: the keys of the command line and those of a file, which is read again when it changes."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from pathlib import Path

from paceline.engine.errors import ConfigError

from .caller import ANYONE, Anyone, Caller
from .key_file import hash_of, read_keys
from .limits import Allowance, Holder

_log = logging.getLogger("paceline.server")

_Signature = tuple[int, int, int] | None  # of a file; None when it is missing


class KeyRing:
    """One caller for each key, for as long as the key is there; keys of the command line have no limits.

    A key is looked up by its hash with a salt that nobody outside knows: the time it takes says nothing about which
    keys exist.
    """

    def __init__(self, keys: Iterable[str] = (), path: Path | None = None) -> None:
        """Raises ConfigError for a file that is missing or broken; a running server keeps what it read last instead."""
        self._path = path
        self._own_salt = secrets.token_bytes(16)
        given = tuple(dict.fromkeys(keys))
        self._given: dict[str, Holder] = {
            hash_of(key, self._own_salt): Holder(f"api-key-{i}", f"api-key-{i}", Allowance())
            for i, key in enumerate(given, 1)
        }
        self._file_salt = b""
        self._filed: dict[str, Holder] = {}
        self._signature: _Signature = None
        if path is not None:
            self._signature = _signature_of(path)
            self._read(path)

    @property
    def guards(self) -> bool:
        """True when nobody may come in without a key."""
        return bool(self._given) or self._path is not None

    def find(self, key: str) -> Holder | None:
        self.refresh()
        given = self._given.get(hash_of(key, self._own_salt))
        return self._filed.get(hash_of(key, self._file_salt)) if given is None else given

    def guest(self, key: str | None) -> Caller:
        """Whoever comes where no key is needed; two that send different keys are told apart."""
        return ANYONE if key is None else Anyone(hash_of(key, self._own_salt)[:32])

    def refresh(self) -> None:
        """Reads the file again if it changed. A broken one is said once in the log, and the keys stay as they were."""
        if self._path is None or (signature := _signature_of(self._path)) == self._signature:
            return
        self._signature = signature
        try:
            self._read(self._path)
        except ConfigError as error:
            _log.error("%s Until then the keys that were read before hold.", error)

    def _read(self, path: Path) -> None:
        keys = read_keys(path)
        known = {holder.id: holder for holder in self._filed.values()}
        filed: dict[str, Holder] = {}
        for record in keys.records:
            holder = known.pop(record.id, None) or Holder(
                record.id, record.name, record.allowance, refresh=self.refresh
            )
            holder.name, holder.allowance = record.name, record.allowance
            filed[record.hash] = holder
        for holder in known.values():
            holder.removed = True
        self._filed, self._file_salt = filed, keys.salt


def _signature_of(path: Path) -> _Signature:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
