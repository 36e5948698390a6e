"""The Triton backend: what all its ops share, and the table of them."""
