from __future__ import annotations

from paceline.server.ids import random_id
from paceline.server.items import MAX_ID


def test_ids_are_never_the_same_and_can_be_sent_back() -> None:
    made = {random_id("conv") for _ in range(100)}
    assert len(made) == 100
    assert all(id_.startswith("conv_") and len(id_) <= MAX_ID for id_ in made)
