"""The one number every room agrees on. Kept apart from arrays: bookkeeping imports it and nothing else."""

BLOCK_SIZE = 16  # slots per block; slot s lives in block s // 16 at offset s % 16
