from __future__ import annotations

import json

import orjson
from token_replies import TOKENIZER, letters
from traces import assert_step, chain_trace

from paceline.engine.request import TreeTrace
from paceline.server.step_trace import step_body


def test_a_step_as_clients_see_it() -> None:
    a, b, c = letters("abc")
    trace = TreeTrace(
        tokens=(a, b, c),
        parents=(-1, 0, 0),
        sources=("", "suffix", "heads+suffix"),
        estimates=(1.0, 0.123456, 1 / 3),
        chances=(1.0, 0.5, 0.987654321),
        path=(0, 2),
        bonus=a,
    )
    assert step_body(trace, 1.23456, "best", TOKENIZER) == {
        "ms": 1.235,
        "nodes": 3,
        "drafted": 2,
        "accepted": 1,
        "emitted": 2,
        "reason": "best",
        "tokens": [{"text": "c", "source": "heads+suffix"}, {"text": "a", "source": ""}],
        "tree": {
            "texts": ["a", "b", "c"],
            "parents": [-1, 0, 0],
            "sources": ["", "suffix", "heads+suffix"],
            "estimates": [1.0, 0.1235, 0.3333],
            "chances": [1.0, 0.5, 0.9877],
            "path": [0, 2],
        },
    }


def test_tokens_that_are_parts_of_characters_or_none_can_be_read() -> None:
    """And sent: whatever a vocabulary holds, an id outside it included, is valid JSON."""
    tokens = [*letters("😀"), TOKENIZER.special_tokens["<|im_end|>"], TOKENIZER.vocab_size + 5]
    body = step_body(chain_trace(tokens, ["suffix"] * 5), 0.0, "budget", TOKENIZER)
    assert_step(body)
    texts = [token["text"] for token in body["tokens"]]
    assert texts == ["bytes:\\xf0", "bytes:\\x9f", "bytes:\\x98", "bytes:\\x80", "<|im_end|>", ""]
    whole = step_body(
        chain_trace([*range(TOKENIZER.vocab_size)], ["a"] * (TOKENIZER.vocab_size - 1)), 0, None, TOKENIZER
    )
    assert json.loads(orjson.dumps(whole)) == whole
