"""Compute kernels: one folder per op with its contract, a plain torch reference and faster implementations."""
