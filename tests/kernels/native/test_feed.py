"""`feed` in every instruction set: any width, any share of rows; what does not fit raises."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from native_ops import Program, rows_only

from paceline.kernels.native.recorder import Recorder


@pytest.mark.parametrize("width", [1, 15, 16, 100])
def test_features_are_copied_whatever_the_rows_and_threads(
    module: ModuleType, pools: dict[int, Any], width: int
) -> None:
    random = np.random.default_rng(width)
    for threads, pool in pools.items():
        program = Program(module, pool)
        value = program.native.value(width, False)
        program.native.feed(value)
        for rows in (1, 2, 7, 40, 3):
            features = random.standard_normal((rows, width), np.float32)
            program.run(rows_only(rows)._replace(features=features))
            assert np.array_equal(program.read(value, rows), features), threads


def test_a_recording_takes_its_width_from_the_batch(module: ModuleType, pool: Any) -> None:
    recorder = Recorder(module, pool)

    def forward(batch: Any, cache: Any) -> Any:
        fed = recorder.feed(batch.features)
        return recorder.select(fed, batch.sampled), fed

    batch = rows_only(5, [4, 1])
    for wrong, message in ((np.ones(5, np.float32), "2 dimensions"), (np.ones((5, 0), np.float32), "one column")):
        with pytest.raises(ValueError, match=message):
            recorder.compile(forward)(batch._replace(features=wrong), None)
    run = recorder.compile(forward)
    features = np.random.default_rng(0).standard_normal((5, 6), np.float32)
    chosen, fed = run(batch._replace(features=features), None)
    assert np.array_equal(fed, features)
    assert np.array_equal(chosen, features[[4, 1]])
    with pytest.raises(ValueError, match="do not have the width that this pass reads"):
        run(batch._replace(features=np.ones((5, 7), np.float32)), None)
    with pytest.raises(TypeError, match="features must be a contiguous array of float32"):
        run(batch._replace(features=features.astype(np.float64)), None)
