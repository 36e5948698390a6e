"""All variants together: each op has some, and no two have one name."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from paceline.kernels.gpu import variants
from paceline.kernels.gpu.variant import Variant

pytest.importorskip("triton")


def test_every_op_with_kernels_has_variants() -> None:
    found = {op: variants.variants_of(op) for op in variants.compiled_ops()}
    assert all(found.values())
    names = [variant.name for variant in variants.all_variants()]
    assert names == [variant.name for op in found for variant in found[op]]
    assert len(set(names)) == len(names)
    assert all(name.partition("/")[0] in found for name in names)


def test_two_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Variant("twin", SimpleNamespace(arg_names=["x"]), {"x": "*bf16"}, {})
    module = SimpleNamespace(variants=lambda: [twin, twin])
    monkeypatch.setitem(sys.modules, "paceline.kernels.odd.triton_impl", module)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"variants of odd share names: \['twin'\]"):
        variants.variants_of("odd")
