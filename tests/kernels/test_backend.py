from __future__ import annotations

import dataclasses

import pytest

from paceline.kernels.backend import BackendError, load


def test_reference_is_the_default_and_has_every_op() -> None:
    ops = load()
    assert ops.name == "reference"
    assert ops.guessing is None
    data = ("name", "asynchronous", "sizes", "guessing")
    assert all(callable(getattr(ops, field.name)) for field in dataclasses.fields(ops) if field.name not in data)


def test_unknown_backend_is_refused_with_the_choices() -> None:
    with pytest.raises(BackendError, match=r"'tritn'; choose one of .*reference"):
        load("tritn")
