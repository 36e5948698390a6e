from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from matrices import matrix_of
from native_ops import rows_only

from paceline.kernels.backend import Ops, Options, load
from paceline.kernels.native import isa


@pytest.fixture(params=["reference", "native"])
def backend(request: pytest.FixtureRequest) -> Ops:
    """Passes are compiled, not run op by op."""
    if request.param == "native":
        try:
            isa.load()
        except isa.NativeUnavailableError as error:
            pytest.skip(str(error))
    return load(request.param, Options(threads=2) if request.param == "native" else None)


@pytest.mark.parametrize("width", [1, 5, 64])
def test_features_come_into_a_pass_beside_the_ids(backend: Ops, width: int) -> None:
    """Other features, and another number of rows, in every pass; sampled rows are selected from them as from others."""
    random = np.random.default_rng(width)
    matrix = random.standard_normal((6, width), np.float32)
    table = backend.pack_table(matrix_of(torch.from_numpy(random.standard_normal((40, 6), np.float32))))
    weight = backend.pack(matrix_of(torch.from_numpy(matrix)))

    def forward(batch: Any, cache: Any) -> Any:
        fed = backend.feed(batch.features)
        total = backend.linear(fed, weight, residual=backend.embed(table, batch.ids))
        return backend.select(total, batch.sampled), backend.select(fed, batch.sampled), fed, total

    run = backend.compile(forward)
    embedded = backend.compile(lambda batch, cache: (backend.embed(table, batch.ids),) * 2)
    for rows in (3, 1, 33, 2):
        sampled = [rows - 1, 0]
        features = random.standard_normal((rows, width), np.float32)
        batch = rows_only(rows, sampled)._replace(features=features)
        results = [backend.host(each).copy() for each in run(batch, None)]
        want = backend.host(embedded(batch, None)[0]) + features @ matrix.T
        for got, expected in zip(results, (want[sampled], features[sampled], features, want), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert np.array_equal(results[2], features)


def test_a_pass_that_feeds_needs_features_that_fit(backend: Ops) -> None:
    def forward(batch: Any, cache: Any) -> Any:
        fed = backend.feed(batch.features)
        return backend.select(fed, batch.sampled), fed

    run = backend.compile(forward)
    batch = rows_only(4)
    fitting = batch._replace(features=np.ones((4, 3), np.float32))
    for _ in range(2):  # before it is recorded, and after
        with pytest.raises(ValueError, match="this pass reads features and the batch has none"):
            run(batch, None)
        with pytest.raises(ValueError, match="features must have one row per id"):
            run(batch._replace(features=np.ones((3, 3), np.float32)), None)
        assert backend.host(run(fitting, None)[0]).tolist() == [[1.0] * 3] * 4


def test_a_pass_that_does_not_feed_takes_no_notice_of_features(backend: Ops) -> None:
    table = backend.pack_table(matrix_of(torch.arange(8.0).view(4, 2)))
    run = backend.compile(lambda batch, cache: (backend.embed(table, batch.ids),) * 2)
    for features in (np.ones((4, 3), np.float32), None, np.ones((4, 5), np.float32)):
        result = backend.host(run(rows_only(4)._replace(features=features), None)[0])
        assert result.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
