"""Everything that is compiled for a GPU in serving, over all ops."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from .variant import Variant

_OPS = Path(__file__).resolve().parent.parent


def compiled_ops() -> list[str]:
    """The ops that have kernels of Triton's, by the names of their folders. Loads none of them."""
    return sorted(path.parent.name for path in _OPS.glob("*/triton_impl.py"))


def variants_of(op: str) -> list[Variant]:
    """The variants of one op, their names preceded by the op's: "linear/q4 576x576".

    Raises ValueError when two have one name.
    """
    variants = import_module(f"paceline.kernels.{op}.triton_impl").variants()
    names = [variant.name for variant in variants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"The variants of {op} share names: {sorted(twice)}.")
    return [replace(variant, name=f"{op}/{variant.name}") for variant in variants]


def all_variants() -> list[Variant]:
    return [variant for op in compiled_ops() for variant in variants_of(op)]
