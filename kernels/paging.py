"""The one number every room agrees on. Kept apart from arrays: bookkeeping imports it and nothing else."""

from collections.abc import Sequence

BLOCK_SIZE = 16  # slots per block; slot s lives in block s // 16 at offset s % 16


def slots_of(blocks: Sequence[int], first: int, count: int) -> list[int]:
    """The slots of `count` positions from `first` on, by a sequence's block table."""
    offset = first % BLOCK_SIZE
    if offset + count <= BLOCK_SIZE:  # nearly always
        slot = blocks[first // BLOCK_SIZE] * BLOCK_SIZE + offset
        return list(range(slot, slot + count))
    return [blocks[at // BLOCK_SIZE] * BLOCK_SIZE + at % BLOCK_SIZE for at in range(first, first + count)]
