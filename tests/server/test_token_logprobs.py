"""Log-probabilities on the wire."""

from __future__ import annotations

from vocabularies import byte_level_tokenizer

from paceline.engine.request import TokenLogprob
from paceline.server.token_logprobs import LOWEST_LOGPROB, logprob_body


def test_a_token_and_its_alternatives() -> None:
    tokenizer = byte_level_tokenizer()
    (token,) = tokenizer.encode("a")
    body = logprob_body(tokenizer, TokenLogprob(token, -0.5, ((token, -0.5), (token + 1, float("-inf")))))
    first, second = body.pop("top_logprobs")
    assert body == first == {"token": "a", "logprob": -0.5, "bytes": [97]}
    assert second["logprob"] == LOWEST_LOGPROB
    assert bytes(second["bytes"]) == tokenizer.token_bytes(token + 1)
