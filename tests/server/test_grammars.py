"""Masks against the definition, on vocabularies small enough to try every token; and what cannot be compiled."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence

import pytest
import tokenizers
from grammars import END, FORMATS, TOO_WIDE, allowed, bits, small_tokenizer
from tokenizers import normalizers
from vocabularies import byte_level_tokenizer, sentencepiece_tokenizer

from paceline.engine.errors import GrammarError, RequestError
from paceline.engine.grammar import Grammar
from paceline.server.grammars import MAX_GRAMMAR_CHARS, Grammars
from paceline.server.reply_format import lark_of
from paceline.server.tokenizer import Tokenizer

SPARE = 40  # ids of the model that no token bears


@pytest.fixture(scope="module")
def small() -> Grammars:
    tokenizer = small_tokenizer()
    return Grammars(tokenizer, tokenizer.vocab_size + SPARE)


def walk(grammars: Grammars, lark: str, seed: int, most: int = 200) -> list[int]:
    """Tokens of a reply, each chosen at random among those that may come; an end token closes it."""
    pick, matcher = random.Random(seed), grammars.compile(lark, "x").matcher()
    tokens: list[int] = []
    while END not in tokens and len(tokens) < most:
        tokens.append(pick.choice(allowed(matcher)))
        if tokens[-1] != END:
            matcher.advance(tokens[-1:])
    return tokens


@pytest.mark.parametrize(
    ("regex", "prefixes"),
    [
        (r"[ab]{1,3}x?", r"[ab]{1,3}x?|"),
        (r"(true|tune) na*me", r"t?|tr?|tru|true|tu|tun|tune|(true|tune) |(true|tune) na*|(true|tune) na*me?"),
    ],
)
def test_a_mask_allows_what_a_search_over_all_tokens_does(small: Grammars, regex: str, prefixes: str) -> None:
    """Everywhere but where the text to come is certain: there its usual spelling alone is left."""
    tokenizer = small_tokenizer()
    grammar = small.compile(f"start: /{regex}/", "x")
    texts = [token.decode() for token in map(tokenizer.token_bytes, range(1, tokenizer.vocab_size))]
    todo, seen = [()], 0
    while todo and seen < 200:
        path: tuple[int, ...] = todo.pop()
        text = tokenizer.decode(path)
        matcher = grammar.matcher()
        matcher.advance(path)
        fitting = [id_ for id_, more in enumerate(texts, start=1) if re.fullmatch(prefixes, text + more)]
        ends = [END] if re.fullmatch(regex, text) else []
        if forced := list(matcher.forced()):
            assert allowed(matcher) == forced[:1]
            assert forced[0] in fitting
            assert len({texts[id_ - 1][0] for id_ in fitting}) == 1
        else:
            assert allowed(matcher) == ends + fitting
        todo += [(*path, id_) for id_ in fitting if len(path) < 4]
        seen += 1
    assert seen > 20


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("make", [small_tokenizer, byte_level_tokenizer, sentencepiece_tokenizer])
def test_a_mask_depends_on_the_tokens_alone(make: Callable[[], Tokenizer], name: str) -> None:
    """However they came, and whatever else was asked; and what is forced is all that may come."""
    tokenizer = make()
    grammars, pick = Grammars(tokenizer, tokenizer.vocab_size), random.Random(5)
    grammar = grammars.compile(lark_of(FORMATS[name][0]), "x")
    for _ in range(3):
        asked, path = grammar.matcher(), list[int]()
        for _ in range(25):
            fresh = grammar.matcher()
            fresh.advance(path)
            may = allowed(fresh)
            for _ in range(3):
                asked.fits([pick.randrange(tokenizer.vocab_size) for _ in range(3)])
            assert allowed(asked) == may
            for token in (forced := fresh.forced()):
                assert allowed(fresh) == [token]
                fresh.advance([token])
            assert asked.fits(forced) == len(forced)
            words = [token for token in may if token not in tokenizer.eos_ids]
            if not words:
                break
            refused = [token for token in range(tokenizer.vocab_size) if token not in may]
            assert [asked.fits([token]) for token in words] == [1] * len(words)
            assert not any(asked.fits([token]) for token in refused)
            path.append(pick.choice(words))
            asked.advance(path[-1:])


@pytest.mark.parametrize("name", FORMATS)
def test_replies_at_random_follow_their_grammar(small: Grammars, name: str) -> None:
    form, follows = FORMATS[name]
    replies = [walk(small, lark_of(form), seed) for seed in range(20)]
    whole = [reply for reply in replies if reply[-1] == END]
    assert whole
    assert all(follows(small_tokenizer().decode(reply)) for reply in whole)


@pytest.mark.parametrize("make", [small_tokenizer, byte_level_tokenizer, sentencepiece_tokenizer])
def test_text_is_made_of_no_control_token_and_of_no_id_without_one(make: Callable[[], Tokenizer]) -> None:
    tokenizer = make()
    grammar = Grammars(tokenizer, tokenizer.vocab_size + SPARE).compile(r'start: "<|im_end|>" /(.|\n)*/', "x")
    matcher = grammar.matcher()
    assert not tokenizer.special_ids & {*allowed(matcher)}
    matcher.advance(tokenizer.encode("<|im_end|>") if make is not sentencepiece_tokenizer else matcher.forced())
    assert tokenizer.special_ids & {*allowed(matcher)} == {*tokenizer.eos_ids}
    assert max(allowed(matcher)) < tokenizer.vocab_size
    assert len(bits(matcher.mask())) == -(-(tokenizer.vocab_size + SPARE) // 32) * 32


def test_every_end_token_may_end_a_reply_and_nothing_else_may_come_then() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.eos_ids = (2, 0)
    matcher = Grammars(tokenizer, tokenizer.vocab_size).compile('start: "a" "b"?', "x").matcher()
    a, b = tokenizer.encode("a")[0], tokenizer.encode("b")[0]
    assert allowed(matcher) == [a]
    matcher.advance([a])
    assert allowed(matcher) == sorted([0, 2, b])
    matcher.advance([b])
    assert allowed(matcher) == [0, 2]
    assert list(matcher.forced()) == []


def test_a_special_token_stands_where_the_grammar_names_it() -> None:
    """Added tokens that are none, such as <think>, are text and may stand for it."""
    tokenizer = byte_level_tokenizer()
    grammars = Grammars(tokenizer, tokenizer.vocab_size)
    named = grammars.compile('start: <|im_start|> "a"', "x").matcher()
    assert allowed(named) == [tokenizer.special_tokens["<|im_start|>"]]
    text = grammars.compile('start: "<think>" "a"', "x").matcher()
    (think,) = tokenizer.encode("<think>")
    assert (allowed(text), next(iter(text.forced()))) == ([think], think)
    assert text.fits([think]) == 1


@pytest.mark.parametrize("text", ["Příliš žluťoučký", "日本語", "😀👍🏽", "e\u0301e", "a\u200bb"])
@pytest.mark.parametrize("make", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_forced_text_is_spelled_to_its_end_whatever_the_vocabulary_does_to_text(
    make: Callable[[], Tokenizer], text: str
) -> None:
    composing = make()._backend
    composing.normalizer = normalizers.NFC() if composing.normalizer is None else composing.normalizer
    tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(composing.to_str()), eos_ids=(2,))
    matcher = Grammars(tokenizer, tokenizer.vocab_size).compile(f'start: "{text}"', "x").matcher()
    tokens: list[int] = []
    while not {*allowed(matcher)} & {2}:
        (token,) = allowed(matcher)
        matcher.advance([token])
        tokens.append(token)
    assert b"".join(map(tokenizer.token_bytes, tokens)).decode() == text


def test_a_model_without_an_end_token_follows_nothing() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.eos_ids = ()
    with pytest.raises(RequestError, match="no token that ends a reply") as caught:
        Grammars(tokenizer, tokenizer.vocab_size).compile('start: "a"', "response_format")
    assert (caught.value.param, caught.value.code) == ("response_format", "unsupported")


def test_a_token_that_may_not_come_is_an_error_of_the_reply(small: Grammars) -> None:
    matcher = small.compile('start: "ab" | "cd"', "x").matcher()
    wrong = small_tokenizer().encode("x")
    assert matcher.fits(wrong) == 0
    with pytest.raises(GrammarError, match="send the request again"):
        matcher.advance(wrong)


def test_a_grammar_that_grows_too_complex_ends_in_one_sentence(small: Grammars) -> None:
    matcher = small.compile(TOO_WIDE, "x").matcher()
    assert len(allowed(matcher)) == 1
    g, _ = small_tokenizer().encode("go")
    with pytest.raises(GrammarError) as caught:
        matcher.advance([g])
    with pytest.raises(GrammarError):
        matcher.mask()
    assert matcher.fits([g]) == 0
    assert str(caught.value).startswith("The reply's grammar grew too complex to be followed any further (")
    assert str(caught.value).endswith("and send the request again.")


def test_what_the_parser_may_do_for_one_mask_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = small_tokenizer()
    lark = "start: " + " ".join(["/[a-c]{0,2}/"] * 60)
    Grammars(tokenizer, tokenizer.vocab_size).compile(lark, "x")
    monkeypatch.setattr("paceline.server.grammars._STEP_ITEMS", 100)
    with pytest.raises(RequestError, match=r"x cannot be followed: .*Too many items") as caught:
        Grammars(tokenizer, tokenizer.vocab_size).compile(lark, "x")
    assert "<" not in str(caught.value)


@pytest.mark.parametrize(
    ("lark", "reason"),
    [
        ("start: /(/", "unclosed group"),
        ('start: "a" rest', 'unknown name: "rest"'),
        ("", "Empty grammar"),
        ('x: "a"', "no start rule found"),
        ("start: a\na: a", "nothing fits it"),
        ('start: %json {"type": "objekt"}', "Invalid type: objekt"),
        ('start: %json {"type": "string", "pattern": "("}', "unclosed group"),
        ('start: %json {"$ref": "http://example.org/x"}', "not present in a registry"),
        ('start: %json {"uniqueItems": true}', "Unimplemented keys"),
        ("start: %json false", "schema is false"),
        ("start: <|nobody|>", "unknown special token"),
        ("start: /" + "(a|b)*" * 600 + "c.*/", "it is too complex"),
        ("start: " + "(" * 14_000 + '"a"' + ")" * 14_000, "too deeply nested"),
        ("start: /" + "(" * 14_000 + "a" + ")" * 14_000 + "/", ""),
        ('start: "' + "a" * MAX_GRAMMAR_CHARS + '"', "simplify it"),
    ],
)
def test_what_cannot_be_followed_is_one_sentence_that_names_the_field(small: Grammars, lark: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        small.compile(lark, "response_format.schema")
    assert (caught.value.param, caught.value.code) == ("response_format.schema", "invalid_grammar")
    message = str(caught.value)
    assert message.startswith("response_format.schema ")
    assert reason in message
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 500


def chain(rules: int) -> str:
    return "start: a0\n" + "".join(f"a{i}:a{i + 1}\n" for i in range(rules)) + f'a{rules}: "x"'


def references(count: int) -> str:
    links = ",".join(f'"{i}":{{"anyOf":[{{"$ref":"#/$defs/{i + 1}"}}]}}' for i in range(count))
    return f'start: %json {{"$ref":"#/$defs/0","$defs":{{{links},"{count}":{{"type":"null"}}}}}}'


@pytest.mark.parametrize("lark", [chain(2550), references(720)], ids=["rules", "references"])
def test_rules_that_name_one_another_in_a_row_do_not_end_the_process(small: Grammars, lark: str) -> None:
    assert 0.9 * MAX_GRAMMAR_CHARS < len(lark) <= MAX_GRAMMAR_CHARS
    found: list[Grammar] = []
    before = threading.stack_size(1 << 20)  # where less than a thread's usual stack is left
    thread = threading.Thread(target=lambda: found.append(small.compile(lark, "x")))
    thread.start()
    threading.stack_size(before)
    thread.join()
    (grammar,) = found
    assert small_tokenizer().decode(allowed(grammar.matcher())[:1])[0] in "xn"


def test_the_same_text_is_compiled_once_and_from_any_thread(small: Grammars) -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(small.compile('start: "once"', "x"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each is found[0] for each in found)
    assert small.compile('start: "twice"', "x") is not found[0]


def test_matchers_of_one_grammar_do_not_see_each_other(small: Grammars) -> None:
    grammar = small.compile('start: "ab" | "cd"', "x")
    one, other = grammar.matcher(), grammar.matcher()

    def come(text: str) -> Sequence[int]:
        return small_tokenizer().encode(text)

    one.advance(come("a"))
    assert allowed(one) == list(come("b"))
    assert other.fits(come("c")) == 1
