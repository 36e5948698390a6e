"""Blocks of the cache and who holds them: reference counts and one list of idle blocks in eviction order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable


class BlockPool:
    """Hands out blocks 0 … total - 1.

    A block is held (counted references), cached (idle, but its content can be found again) or free. Idle blocks are
    taken free ones first, then the cached one idle for longest; `on_evict` is told before a cached one is reused.
    """

    def __init__(self, total: int, on_evict: Callable[[int], None]) -> None:
        self.total = total
        self._references = [0] * total
        self._free = list(range(total - 1, -1, -1))  # a stack: low numbers first
        self._cached: OrderedDict[int, None] = OrderedDict()  # oldest first
        self._on_evict = on_evict

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def cached(self) -> int:
        return len(self._cached)

    @property
    def held(self) -> int:
        return self.total - self.free - self.cached

    @property
    def available(self) -> int:
        """Blocks that can be taken now."""
        return self.free + self.cached

    def take(self, count: int) -> list[int]:
        """`count` blocks with one reference each. The caller has checked `available`; else IndexError."""
        if count > self.available:
            raise IndexError(f"{count} blocks wanted, {self.available} available")
        self.keep_free(count)
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            self._references[block] = 1
        return blocks

    def keep_free(self, count: int) -> None:
        """Evict cached blocks, oldest first, until `count` are free or none is left to evict."""
        while len(self._free) < count and self._cached:
            block, _ = self._cached.popitem(last=False)
            self._on_evict(block)
            self._free.append(block)

    def share(self, block: int) -> None:
        """One more reference to a held or cached block."""
        if self._references[block] == 0:
            del self._cached[block]
        self._references[block] += 1

    def give_back(self, blocks: Iterable[int], is_findable: Callable[[int], bool]) -> None:
        """Drop one reference each; the first one given is evicted first later on."""
        for block in blocks:
            self._references[block] -= 1
            if self._references[block] == 0:
                if is_findable(block):
                    self._cached[block] = None
                else:
                    self._free.append(block)

    def drop(self, block: int) -> None:
        """A cached block lost its content: it is free now. No effect on a held one."""
        if block in self._cached:
            del self._cached[block]
            self._free.append(block)

    def check(self, holders: Iterable[Iterable[int]]) -> None:
        """Raise AssertionError unless every block is in exactly one state and references match the holders."""
        counted = [0] * self.total
        for blocks in holders:
            for block in blocks:
                counted[block] += 1
        assert counted == self._references, "references differ from what sequences hold"
        idle = set(self._free) | set(self._cached)
        assert len(idle) == len(self._free) + len(self._cached), "a block is idle twice"
        assert all(self._references[block] == 0 for block in idle), "an idle block is referenced"
        assert len(idle) + sum(count > 0 for count in counted) == self.total, "free + held + cached != total"
