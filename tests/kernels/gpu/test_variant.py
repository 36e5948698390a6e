"""A variant says of each argument of its kernel what it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paceline.kernels.gpu.variant import TARGETS, Variant

KERNEL = SimpleNamespace(arg_names=["x", "count", "BLOCK"])


def test_each_argument_has_a_type_or_a_value() -> None:
    variant = Variant("copy", KERNEL, {"x": "*bf16", "count": "i32"}, {"BLOCK": 16}, aligned=("x",))
    assert variant.targets == TARGETS


@pytest.mark.parametrize(
    ("types", "constants", "more", "said"),
    [
        ({"x": "*bf16"}, {"BLOCK": 16}, {}, r"missing \['count'\]"),
        ({"x": "*bf16", "count": "i32", "y": "*bf16"}, {"BLOCK": 16}, {}, r"unknown \['y'\]"),
        ({"x": "*bf16", "count": "i32"}, {"BLOCK": 16, "count": 1}, {}, r"twice \['count'\]"),
        ({"x": "*bf16", "count": "i32"}, {"BLOCK": 16}, {"aligned": ("BLOCK",)}, "BLOCK"),
        ({"x": "*bf16", "count": "i32"}, {"BLOCK": 16}, {"targets": ("sm_75",)}, "sm_75"),
    ],
)
def test_what_is_left_out_or_too_much_is_named(
    types: dict[str, str], constants: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Variant("copy", KERNEL, types, constants, **more)
