from __future__ import annotations

import numpy as np
import pytest
import torch

from paceline.kernels.gpu.staging import NOWHERE, Staging

CPU = torch.device("cpu")


def test_arrays_stand_at_fixed_places_and_what_a_step_leaves_is_marked() -> None:
    staging = Staging({"ids": (5,), "items": (3, 2), "tables": (8,)}, CPU, {"ids": 0})
    device = staging.on_device()
    places = [array.data_ptr() for array in device.values()]
    for rows, items, blocks in ((4, 3, 8), (1, 1, 2), (3, 2, 5)):
        staging.fill(
            {
                "ids": np.arange(1, rows + 1),  # of 64 bits, as a batch has them
                "items": np.full((items, 2), 7, np.int32),
                "tables": np.arange(blocks, dtype=np.int32),
            }
        )
        assert device["ids"].tolist() == [*range(1, rows + 1), *[0] * (5 - rows)]
        assert device["items"].tolist() == [[7, 7]] * items + [[NOWHERE, NOWHERE]] * (3 - items)
        assert device["tables"][:blocks].tolist() == list(range(blocks))
    assert [array.data_ptr() for array in staging.on_device().values()] == places
    assert all(array.dtype == torch.int32 and array.data_ptr() % 16 == 0 for array in device.values())


def test_an_array_with_a_padding_is_padded_wherever_it_stands() -> None:
    for shapes in ({"ids": (4,), "sampled": (4,)}, {"sampled": (4,), "ids": (4,)}):
        staging = Staging(shapes, CPU, {"sampled": 0})
        for count in (2, 4, 3):
            staging.fill({name: np.arange(1, count + 1) for name in shapes})
            assert staging.on_device()["sampled"].tolist() == [*range(1, count + 1), *[0] * (4 - count)]


def test_an_array_that_does_not_fit_is_refused() -> None:
    staging = Staging({"ids": (4,), "items": (3, 2)}, CPU)
    with pytest.raises(ValueError, match=r"items has the shape \(4, 2\), there is room for \(3, 2\)"):
        staging.fill({"items": np.zeros((4, 2), np.int32)})
    with pytest.raises(ValueError, match="ids has the shape"):
        staging.fill({"ids": np.zeros((2, 2), np.int32)})
    with pytest.raises(KeyError):
        staging.fill({"rows": np.zeros(2, np.int32)})
