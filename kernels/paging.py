"""The one number every room agrees on. Kept apart from tensors: bookkeeping imports it without loading torch."""

BLOCK_SIZE = 16  # slots per block; slot s lives in block s // 16 at offset s % 16
