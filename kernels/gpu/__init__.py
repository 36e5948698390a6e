"""The Triton backend: what all its ops share, and the table of them."""

import os

# Whether a product and a sum are rounded once or twice is part of a row's bits: said here, before a kernel is compiled,
# since Triton is about to change what it does unasked.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
