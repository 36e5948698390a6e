"""Which slots a sequence owns, from admission to release."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from paceline.kernels.paging import BLOCK_SIZE

from .block_pool import BlockPool
from .prefix_cache import ROOT, PrefixCache
from .sequence import Sequence

Move = tuple[int, int]  # source slot, target slot


def blocks_for(slots: int) -> int:
    return -(-slots // BLOCK_SIZE)


class PageTable:
    """Binds sequences to blocks.

    `spare` of the blocks are for guesses alone: free between steps, out of reach of `reserve`. What sequences and the
    prefix cache can hold is then the same with speculation and without.
    """

    def __init__(self, total_blocks: int, spare: int = 0) -> None:
        self._cache = PrefixCache()
        self.pool = BlockPool(total_blocks, on_evict=self._cache.forget)
        self._spare = spare

    @staticmethod
    def slot(seq: Sequence, index: int) -> int:
        return seq.blocks[index // BLOCK_SIZE] * BLOCK_SIZE + index % BLOCK_SIZE

    def admit(self, seq: Sequence) -> int:
        """Share the blocks of the longest published prefix. Returns the hits.

        At least one token stays to compute where one is to be chosen.
        """
        found = self._cache.match(seq.tokens if seq.request.prefill_only else seq.tokens[:-1])
        for block, key in found:
            self.pool.share(block)
            seq.blocks.append(block)
            seq.published.append(key)
        seq.num_computed = len(found) * BLOCK_SIZE
        return seq.num_computed

    def reserve(self, seq: Sequence, nodes: int) -> bool:
        """Make room for `nodes` more slots after the computed ones; False, with nothing changed, when there is none."""
        missing = blocks_for(seq.num_computed + nodes) - len(seq.blocks)
        if missing > 0:
            if missing > self._available:
                return False
            self.pool.keep_free(missing + self._spare)
            seq.blocks += self.pool.take(missing)
        return True

    @property
    def _available(self) -> int:
        return self.pool.available - self._spare

    def room(self, seq: Sequence) -> int:
        """Most new slots `reserve` could give the sequence now."""
        return (len(seq.blocks) + self._available) * BLOCK_SIZE - seq.num_computed

    def spare_room(self, seq: Sequence, nodes: int) -> int:
        """Reserve slots for up to `nodes` new nodes without touching cached content; returns how many there are."""
        missing = blocks_for(seq.num_computed + nodes) - len(seq.blocks)
        if missing > 0:
            seq.blocks += self.pool.take(min(missing, self.pool.free))
        return min(nodes, len(seq.blocks) * BLOCK_SIZE - seq.num_computed)

    def commit(self, seq: Sequence, path: Seq[int]) -> list[Move]:
        """Keep the slots of the accepted nodes and give back the rest; the tokens are in `seq.tokens` already.

            [0 ............ c)  [c]   [c+1 … c+n)        accepted node path[j] belongs at slot c + j
             committed           root  guesses

        Returns the slots to copy. Blocks filled by the path are published: whoever finds them computes in a later
        step, after the copies.
        """
        c = seq.num_computed
        moves = [(self.slot(seq, c + node), self.slot(seq, c + j)) for j, node in enumerate(path) if node != j]
        seq.num_computed += len(path)
        self._trim(seq, blocks_for(seq.num_computed))
        for index in range(len(seq.published), seq.num_computed // BLOCK_SIZE):
            parent = seq.published[-1] if seq.published else ROOT
            tokens = seq.tokens[index * BLOCK_SIZE : (index + 1) * BLOCK_SIZE]
            seq.published.append(self._cache.publish(seq.blocks[index], parent, tokens))
        return moves

    def truncate(self, seq: Sequence, length: int) -> None:
        """Cut the sequence back to `length` tokens; blocks with content past them are not findable any more."""
        # Looked up by tokens: what a preempted sequence published is in its block table no more.
        for block, _ in self._cache.match(seq.tokens)[length // BLOCK_SIZE :]:
            self._unpublish(block)
        del seq.tokens[length:]
        seq.num_computed = min(length, seq.num_computed)
        del seq.published[seq.num_computed // BLOCK_SIZE :]
        self._trim(seq, blocks_for(seq.num_computed))

    def pin(self, owner: str, tokens: Seq[int]) -> None:
        """Keep the blocks of the longest published prefix of `tokens` for the owner, in place of what was kept for it
        before: they are evicted after all that nobody pinned, and then those of the oldest pin first."""
        self.pool.pin(owner, [block for block, _ in self._cache.match(tokens)])

    def unpin(self, owner: str) -> None:
        """Nothing is kept for the owner any more; unknown ones are ignored."""
        self.pool.pin(owner, ())

    def forget_prefixes(self) -> None:
        """Content can be trusted no more, as after a step that broke: nothing is found again."""
        for block in range(self.pool.total):
            self._unpublish(block)

    def _unpublish(self, block: int) -> None:
        self._cache.forget(block)
        self.pool.drop(block)

    def release(self, seq: Sequence) -> None:
        """Give every block back; published ones stay findable until evicted, the tail first."""
        self._trim(seq, 0)
        seq.published.clear()
        seq.num_computed = 0

    def _trim(self, seq: Sequence, keep: int) -> None:
        if len(seq.blocks) > keep:
            self.pool.give_back(reversed(seq.blocks[keep:]), self._cache.__contains__)
            del seq.blocks[keep:]

    def check(self, sequences: Iterable[Sequence]) -> None:
        """Raise AssertionError when the books do not balance. For tests and for when the engine is idle."""
        alive = list(sequences)
        self.pool.check(seq.blocks for seq in alive)
        assert all(block in self._cache for block in self.pool.pins), "a pinned block cannot be found"
        for seq in alive:
            assert len(seq.blocks) >= blocks_for(seq.num_computed), "computed tokens without slots"
            assert len(seq.published) <= seq.num_computed // BLOCK_SIZE, "a block was published before it was final"
