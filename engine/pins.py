"""For whom blocks of the cache are kept between two requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Seq


class Pins:
    """Each owner pins one chain of blocks, a prefix of its conversation, first block first; chains may share blocks.

    Only books: what a pin is good for is the pool's business. The owner set least recently is the oldest.
    """

    def __init__(self) -> None:
        self._chains: OrderedDict[str, tuple[int, ...]] = OrderedDict()  # oldest first; none is empty
        self._owners: dict[int, set[str]] = {}  # of each pinned block; none is empty

    def __contains__(self, block: int) -> bool:
        return block in self._owners

    def __iter__(self) -> Iterator[int]:
        return iter(self._owners)

    @property
    def oldest(self) -> str:
        """Someone must pin something."""
        return next(iter(self._chains))

    def set(self, owner: str, chain: Seq[int]) -> list[int]:
        """Pin `chain` in place of what the owner pinned before; returns the blocks that nobody pins any more."""
        before = self._chains.pop(owner, ())
        if chain:
            self._chains[owner] = tuple(chain)
        for block in chain:
            self._owners.setdefault(block, set()).add(owner)
        kept = set(chain)
        return self._let_go(owner, (block for block in before if block not in kept))

    def forget(self, block: int) -> list[int]:
        """The block's content is gone, and what follows it in a chain is found no more: pins end before it.

        Returns the blocks that nobody pins any more.
        """
        left: list[int] = []
        for owner in tuple(self._owners.get(block, ())):
            chain = self._chains[owner]
            at = chain.index(block)
            left += self._let_go(owner, chain[at:])
            if at:
                self._chains[owner] = chain[:at]  # as old as it was
            else:
                del self._chains[owner]
        return left

    def _let_go(self, owner: str, blocks: Iterable[int]) -> list[int]:
        left = []
        for block in blocks:
            owners = self._owners[block]
            owners.discard(owner)
            if not owners:
                del self._owners[block]
                left.append(block)
        return left

    def check(self) -> None:
        """Raise AssertionError unless chains and owners say the same."""
        counted: dict[int, set[str]] = {}
        for owner, chain in self._chains.items():
            assert chain, f"{owner} pins an empty chain"
            assert len(set(chain)) == len(chain), f"{owner} pins a block twice"
            for block in chain:
                counted.setdefault(block, set()).add(owner)
        assert counted == self._owners, "owners differ from what chains hold"
