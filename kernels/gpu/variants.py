"""Everything that is compiled for a GPU in serving, over all modules that launch kernels."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from .variant import Variant

_KERNELS = Path(__file__).resolve().parent.parent
_OF_ONE_OP = "triton_impl"


def launching() -> dict[str, str]:
    """The modules that define `variants()`, by the names of their ops, or their own in this folder. Loads none."""
    found = {}
    for path in sorted([*_KERNELS.glob(f"*/{_OF_ONE_OP}.py"), *_KERNELS.glob("gpu/*.py")]):
        if "\ndef variants()" in path.read_text(encoding="utf-8"):
            name = path.parent.name if path.stem == _OF_ONE_OP else path.stem
            found[name] = f"paceline.kernels.{path.parent.name}.{path.stem}"
    return found


def variants_of(name: str, module: str) -> list[Variant]:
    """The variants of one module, their names preceded by that of the module, as in "linear/q4 576x576".

    Raises ValueError when two have one name.
    """
    variants = import_module(module).variants()
    names = [variant.name for variant in variants]
    if twice := {each for each in names if names.count(each) > 1}:
        raise ValueError(f"Variants of {module} share names: {sorted(twice)}.")
    return [replace(variant, name=f"{name}/{variant.name}") for variant in variants]


def all_variants() -> list[Variant]:
    return [variant for name, module in launching().items() for variant in variants_of(name, module)]
