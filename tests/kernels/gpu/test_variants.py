"""All variants together: each module with kernels to launch has some, and no two have one name."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from paceline.kernels.gpu import variants
from paceline.kernels.gpu.variant import Variant

pytest.importorskip("triton")

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def test_every_module_that_launches_has_variants() -> None:
    """A launch is a kernel with its grid in brackets."""
    modules = variants.launching()
    files = {path for path in KERNELS.rglob("*.py") if "@triton.jit" in path.read_text() and ")](" in path.read_text()}
    assert {f"paceline.kernels.{path.parent.name}.{path.stem}" for path in files} <= set(modules.values())
    found = {name: variants.variants_of(name, module) for name, module in modules.items()}
    assert all(found.values())
    names = [variant.name for variant in variants.all_variants()]
    assert names == [variant.name for name in found for variant in found[name]]
    assert len(set(names)) == len(names)
    assert {name.partition("/")[0] for name in names} == set(modules)


def test_two_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Variant("twin", SimpleNamespace(arg_names=["x"]), {"x": "*bf16"}, {})
    monkeypatch.setitem(sys.modules, "odd_module", SimpleNamespace(variants=lambda: [twin, twin]))  # type: ignore
    with pytest.raises(ValueError, match=r"Variants of odd_module share names: \['twin'\]"):
        variants.variants_of("odd", "odd_module")
