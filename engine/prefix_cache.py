"""Find full blocks again by the tokens that led to them."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.kernels.paging import BLOCK_SIZE

ROOT = b""  # chain key before the first block


def chain_key(parent: bytes, tokens: Sequence[int]) -> bytes:
    """Key of a block: its own tokens and, through the parent's key, all tokens before it."""
    return hashlib.blake2b(parent + array("I", tokens).tobytes(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class _Entry:
    block: int
    parent: bytes
    tokens: tuple[int, ...]


class PrefixCache:
    """Published blocks by chain key; a block is published at most once."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, _Entry] = {}
        self._key_of: dict[int, bytes] = {}

    def __contains__(self, block: int) -> bool:
        return block in self._key_of

    def publish(self, block: int, parent: bytes, tokens: Sequence[int]) -> bytes:
        """Make a full block with final content findable; of two equal ones the first stays. Returns its chain key."""
        key = chain_key(parent, tokens)
        if key not in self._by_key:
            self._by_key[key] = _Entry(block, parent, tuple(tokens))
            self._key_of[block] = key
        return key

    def match(self, tokens: Sequence[int]) -> list[tuple[int, bytes]]:
        """(block, key) of the longest published run of full blocks that `tokens` starts with."""
        found: list[tuple[int, bytes]] = []
        parent = ROOT
        for start in range(0, len(tokens) - BLOCK_SIZE + 1, BLOCK_SIZE):
            wanted = tuple(tokens[start : start + BLOCK_SIZE])
            key = chain_key(parent, wanted)
            entry = self._by_key.get(key)
            if entry is None or entry.tokens != wanted or entry.parent != parent:
                break
            found.append((entry.block, key))
            parent = key
        return found

    def forget(self, block: int) -> None:
        """The block's content goes away; no effect when it was never published."""
        key = self._key_of.pop(block, None)
        if key is not None:
            del self._by_key[key]
