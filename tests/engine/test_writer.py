from __future__ import annotations

import pytest
from fakes import RandomCheckpoint, make_request, run, tiny_engine

from paceline.engine.engine import Engine
from paceline.engine.errors import ModelError
from paceline.engine.writer import EngineWriter
from paceline.spec.training.dialogues import Wish

STOP = 5


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine(RandomCheckpoint(31, context_length=64))


def wish(number: int) -> Wish:
    return Wish((1, 2, 3 + number), temperature=0.8, max_tokens=20, seed=number)


def test_what_is_written_is_what_the_engine_says(engine: Engine) -> None:
    expected = {}
    for number in range(5):
        w = wish(number)
        request = make_request(
            "r", w.prompt, max_tokens=20, seed=number, temperature=0.8, stop_ids=frozenset({STOP}), mode="none"
        )
        expected[number] = [token for token in run(engine, [request]).tokens("r") if token != STOP]
    writer = EngineWriter(engine, frozenset({STOP}), most=5)
    for number in range(5):
        writer.begin(number, wish(number))
    found = {}
    while len(found) < 5:
        found.update(writer.advance())
    assert found == expected
    assert writer.advance() == []


def test_an_engine_that_fails_is_said(engine: Engine) -> None:
    writer = EngineWriter(engine, frozenset(), most=1)
    writer.begin(0, wish(0))
    with pytest.raises(ModelError, match="out of luck"):
        engine.fail("out of luck", writer._post)
