from __future__ import annotations

from collections.abc import Callable

import pytest
from vocabularies import byte_level_tokenizer, sentencepiece_tokenizer

from paceline.server.shared_heads import SharedHeads, common_length
from paceline.server.tokenizer import Tokenizer


class Counting(SharedHeads):
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.chars = 0
        super().__init__(tokenizer)

    def _encoded(self, text: str, guard: str | None) -> tuple[int, ...]:
        self.chars += len(text)
        return super()._encoded(text, guard)


def control(tokenizer: Tokenizer) -> str:
    return max(tokenizer.special_tokens)


@pytest.mark.parametrize("make", [byte_level_tokenizer, sentencepiece_tokenizer])
@pytest.mark.parametrize("guard", [None, "\ufdd0"])
def test_the_tokens_are_those_of_the_whole_texts(make: Callable[[], Tokenizer], guard: str | None) -> None:
    tokenizer = make()
    mark = control(tokenizer)
    broken = "" if guard is None else f" {mark[:1]}{guard}{mark[1:]} "
    head = f"{mark}user\n the cat{broken} is here{mark}\n {mark} user\n"
    for tails in (["a", "a b", " the cat", ".", f"x{mark}", ""], [mark, f"{mark} a"], ["the cat"], [f"{mark}\n"]):
        texts = [head + tail for tail in tails]
        expected = [tuple(tokenizer.encode_rendered(text, guard=guard)) for text in texts]
        assert SharedHeads(tokenizer).encode([(text, guard) for text in texts]) == expected


def test_texts_that_share_nothing() -> None:
    tokenizer = byte_level_tokenizer()
    heads = SharedHeads(tokenizer)
    for texts in ([], ["one", "two"], ["", ""], ["the same", "the same but longer"]):
        assert heads.encode([(text, None) for text in texts]) == [tuple(tokenizer.encode(text)) for text in texts]
    mark = control(tokenizer)
    mixed: list[tuple[str, str | None]] = [(f"{mark}a", None), (f"{mark}b", "\ufdd0")]
    assert heads.encode(mixed) == [tuple(tokenizer.encode_rendered(text)) for text, _ in mixed]


def test_common_length() -> None:
    assert common_length(["abc", "abd", "ab"]) == 2
    assert common_length(["abc"]) == 3
    assert common_length([(1, 2, 3), (1, 3), (1, 2)]) == 1
    assert common_length(["", "a"]) == 0


def test_of_a_text_that_grows_only_its_turn_is_encoded() -> None:
    tokenizer = byte_level_tokenizer()
    heads = Counting(tokenizer)
    mark = control(tokenizer)
    talk = f"{mark}user\n{'word ' * 500}{mark}"
    for size in range(1, 20):
        typed = "user\n" + "so " * size
        heads.encode([(talk + typed + ending, None) for ending in ("", "a", " a", ".")])
    assert heads.chars < len(talk) + 20 * 4 * (len(mark) + 80)
