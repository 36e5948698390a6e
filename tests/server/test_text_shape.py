from __future__ import annotations

from openai.types import Completion
from vocabularies import byte_level_tokenizer

from paceline.engine.request import TokenLogprob
from paceline.server.chat_shape import LOWEST_LOGPROB
from paceline.server.reply_parts import Words
from paceline.server.text_shape import TextShape

TOKENIZER = byte_level_tokenizer()


def test_the_stock_sdk_reads_its_choices() -> None:
    shape = TextShape(TOKENIZER)
    ids = TOKENIZER.encode("hello 😀!")
    entries = [TokenLogprob(id_, -0.5, ((id_, -0.5),)) for id_ in ids]
    logprobs = shape.logprobs(0, entries)
    for content in (shape.whole([Words("hello 😀!")]), *shape.deltas([Words("hel")]), shape.nothing(), shape.blank()):
        choice = {"index": 0, "finish_reason": "stop", "logprobs": logprobs, **content}
        body = {"id": "cmpl-1", "created": 5, "model": "tiny", "object": shape.body_kind, "choices": [choice]}
        assert Completion.model_validate(body, strict=True).choices[0].text == content["text"]
    assert shape.opening([Words("hi")]) == []


def test_offsets_are_where_in_the_text_a_token_begins() -> None:
    text = "a 😀 and ďábelské ódy"
    ids = TOKENIZER.encode(text)
    assert len(ids) > len(text) - 10
    entries = [TokenLogprob(id_, -0.5, ()) for id_ in ids]
    whole = TextShape(TOKENIZER).logprobs(0, entries)
    assert whole is not None
    assert whole["text_offset"] == [len(TOKENIZER.decode(ids[:i]).rstrip("\ufffd")) for i in range(len(ids))]
    # How tokens are spread over chunks changes nothing, and each choice is followed for itself.
    shape = TextShape(TOKENIZER)
    for i, entry in enumerate(entries):
        for index in (1, 2):
            told = shape.logprobs(index, [entry])
            assert told is not None
            assert told["text_offset"] == whole["text_offset"][i : i + 1]


def test_the_token_itself_is_among_the_alternatives_and_infinity_is_no_json() -> None:
    emoji, letter = TOKENIZER.encode("😀")[0], TOKENIZER.encode("a")[0]
    entry = TokenLogprob(emoji, float("-inf"), ((letter, -0.5), (letter, -0.7)))
    told = TextShape(TOKENIZER).logprobs(0, [entry])
    assert told is not None
    assert told["token_logprobs"] == [LOWEST_LOGPROB]
    assert told["top_logprobs"] == [{"a": -0.5, TOKENIZER.token_text(emoji): LOWEST_LOGPROB}]
    assert TextShape(TOKENIZER).logprobs(0, None) is None
