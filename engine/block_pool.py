"""Blocks of the cache and who holds them: reference counts, and idle blocks in the order of eviction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq

from .pins import Pins


class BlockPool:
    """Hands out blocks 0 … total - 1.

    A block is held (counted references), cached (idle, but its content can be found again) or free. Idle blocks are
    taken free ones first, then the cached one idle for longest; `on_evict` is told before a cached one is reused.
    Cached blocks that someone has pinned come after all others: then the oldest pin is lifted, as a whole.
    """

    def __init__(self, total: int, on_evict: Callable[[int], None]) -> None:
        self.total = total
        self._references = [0] * total
        self._free = list(range(total - 1, -1, -1))  # a stack: low numbers first
        self._cached: OrderedDict[int, None] = OrderedDict()  # not pinned, oldest first
        self._pinned: dict[int, None] = {}  # cached, too
        self.pins = Pins()
        self._on_evict = on_evict

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def cached(self) -> int:
        return len(self._cached) + len(self._pinned)

    @property
    def pinned(self) -> int:
        """Of the cached ones."""
        return len(self._pinned)

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
        while len(self._free) < count and self.cached:
            if not self._cached:
                self.pin(self.pins.oldest, ())
                continue
            block, _ = self._cached.popitem(last=False)
            self._on_evict(block)
            self._free.append(block)

    def pin(self, owner: str, chain: Seq[int]) -> None:
        """Keep these blocks, whose content can be found, for the owner, in place of what was kept for it before.

        The first of a chain is what the others need to be found: what is kept no more goes last one first.
        """
        self._unpin(self.pins.set(owner, chain))
        for block in chain:
            if block in self._cached:
                del self._cached[block]
                self._pinned[block] = None

    def _unpin(self, blocks: Seq[int]) -> None:
        """Nobody pins these any more: those that are idle are cached as any other."""
        for block in reversed(blocks):
            if block in self._pinned:
                del self._pinned[block]
                self._cached[block] = None

    def share(self, block: int) -> None:
        """One more reference to a held or cached block."""
        if self._references[block] == 0:
            del self._idle(block)[block]
        self._references[block] += 1

    def give_back(self, blocks: Iterable[int], is_findable: Callable[[int], bool]) -> None:
        """Drop one reference each; the first one given is evicted first later on."""
        for block in blocks:
            self._references[block] -= 1
            if self._references[block] == 0:
                if is_findable(block):
                    self._idle(block)[block] = None
                else:
                    self._free.append(block)

    def drop(self, block: int) -> None:
        """A block lost its content: it is pinned no more, and free now if it was cached."""
        self._unpin(self.pins.forget(block))
        if block in self._cached:
            del self._cached[block]
            self._free.append(block)

    def _idle(self, block: int) -> dict[int, None]:
        """Where the block belongs while it is cached."""
        return self._pinned if block in self.pins else self._cached

    def check(self, holders: Iterable[Iterable[int]]) -> None:
        """Raise AssertionError unless every block is in exactly one state and references match the holders."""
        counted = [0] * self.total
        for blocks in holders:
            for block in blocks:
                counted[block] += 1
        assert counted == self._references, "references differ from what sequences hold"
        idle = {*self._free, *self._cached, *self._pinned}
        assert len(idle) == self.free + self.cached, "a block is idle twice"
        assert all(self._references[block] == 0 for block in idle), "an idle block is referenced"
        assert len(idle) + sum(count > 0 for count in counted) == self.total, "free + held + cached != total"
        self.pins.check()
        pinned = set(self.pins)
        assert pinned.isdisjoint(self._free), "a pinned block is free"
        assert pinned.isdisjoint(self._cached), "a pinned block may be evicted"
        assert pinned.issuperset(self._pinned), "a block is kept for nobody"
