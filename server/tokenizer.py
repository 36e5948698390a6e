"""Text to tokens and back, by the `tokenizers` library alone: importing transformers would cost seconds at start-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import AddedToken, normalizers

from paceline.engine.errors import ModelError

from .gguf_vocab import tokenizer_from_gguf
from .text_decoder import Spelling, TextDecoder

if TYPE_CHECKING:
    from paceline.engine.model.checkpoint import TextAssets


_NEAR = 4096  # characters that are searched for a control token: some models have a thousand of them


class Tokenizer:
    """A model's vocabulary. Special tokens are the control tokens of the model; other added tokens are plain text."""

    def __init__(self, backend: tokenizers.Tokenizer, *, eos_ids: Sequence[int] = ()) -> None:
        """Raises ModelError when the vocabulary cannot be turned back into text token by token."""
        backend.no_truncation()
        backend.no_padding()
        decoder = backend.decoder
        self._spelling = Spelling.from_decoder(b"null" if decoder is None else decoder.__getstate__())
        self._backend = backend
        self._plain = _twin(backend)
        self._plain.encode_special_tokens = True
        self._guarded: tuple[str, tokenizers.Tokenizer | None] = ("", None)
        self._bytes: dict[int, bytes] = {}
        specials = {token.content: id_ for id_, token in backend.get_added_tokens_decoder().items() if token.special}
        self.special_tokens: Mapping[str, int] = MappingProxyType(specials)
        self.special_ids: frozenset[int] = frozenset(specials.values())
        self.vocab_size: int = backend.get_vocab_size()
        self.eos_ids: tuple[int, ...] = tuple(eos_ids)

    @classmethod
    def from_assets(cls, assets: TextAssets) -> Tokenizer:
        """From tokenizer.json if there is one, else from GGUF metadata.

        Raises ModelError when there is neither, or for a kind of tokenizer that is not supported.
        """
        if assets.tokenizer_json is not None:
            try:
                backend = tokenizers.Tokenizer.from_str(assets.tokenizer_json)
            except Exception as error:  # the library raises a bare Exception for everything it cannot parse
                raise ModelError(f"The model's tokenizer.json cannot be read ({error}); fetch it again.") from error
        elif assets.gguf is not None:
            backend = tokenizer_from_gguf(assets.gguf)
        else:
            raise ModelError("The model has no tokenizer; add its tokenizer.json to the model folder.")
        eos_ids = list(assets.eos_ids)
        if not eos_ids and assets.eos_token is not None:
            id_ = backend.token_to_id(assets.eos_token)
            if id_ is None:
                raise ModelError(
                    f"The end token {assets.eos_token!r} is not in the vocabulary; "
                    "use the tokenizer that belongs to the model."
                )
            eos_ids.append(id_)
        return cls(backend, eos_ids=eos_ids)

    def encode(self, text: str) -> list[int]:
        """Plain text: the name of a special token in it is ordinary text."""
        return _ids(self._plain, text)

    def encode_rendered(self, text: str, *, guard: str | None = None) -> list[int]:
        """A rendered chat template: special tokens are control tokens, and none is added (no second BOS).

        `guard` is a character that only keeps what a person typed from being read as a special token: it is dropped
        once the special tokens are found, so the text around it is encoded as if it had never been there.
        """
        backend = self._backend if guard is None else self._guarded_by(guard)
        return _ids(backend, text)

    def last_control(self, text: str, end: int) -> int:
        """Where the last control token of text[:end] begins, for `encode_rendered`; 0 if none is near.

        The library cuts a text at its control tokens before it does anything else, so that what stands before one and
        what begins with it can be encoded apart.
        """
        start = max(0, end - _NEAR)
        return max([0, *(text.rfind(name, start, end) for name in self._cutting)])

    @cached_property
    def _cutting(self) -> tuple[str, ...]:
        """Control tokens that take nothing of the text before them."""
        added = self._backend.get_added_tokens_decoder().values()
        return tuple(token.content for token in added if token.special and not (token.lstrip or token.single_word))

    def encode_document(self, text: str) -> list[int]:
        """A whole text for the model to go on with: special tokens are control tokens, and it begins as the model's
        texts do (with a BOS, or with nothing), once."""
        ids = self.encode_rendered(text)
        opening = self._opening
        return ids if ids[: len(opening)] == opening else [*opening, *ids]

    @cached_property
    def _opening(self) -> list[int]:
        """What the model's own tokenizer puts before every text."""
        plain, whole = (self._backend.encode("a", add_special_tokens=special).ids for special in (False, True))
        return next((whole[:i] for i in range(len(whole)) if whole[i : i + len(plain)] == plain), [])

    @cached_property
    def longest(self) -> int:
        """No token stands for more characters of a text than this."""
        return max(map(len, self._backend.get_vocab()), default=1)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a token stream, without special tokens; see TextDecoder for what broken UTF-8 becomes."""
        decoder = self.decoder()
        return decoder.push(ids) + decoder.flush()

    def spell(self, ids: Sequence[int]) -> str:
        """As `decode`, with the names of special tokens."""
        decoder = TextDecoder(self._bytes_of, strip=self._spelling.strip)
        return decoder.push(ids) + decoder.flush()

    def decoder(self, shown: Mapping[int, str] = MappingProxyType({})) -> TextDecoder:
        """A new incremental decoder; special tokens give no text, but those in `shown` their character."""
        return TextDecoder(self.token_bytes, strip=self._spelling.strip, shown=shown)

    def token_bytes(self, id_: int) -> bytes:
        """The bytes this token adds to a text; b"" for a special token and for an id outside the vocabulary."""
        return b"" if id_ in self.special_ids else self._bytes_of(id_)

    def token_text(self, id_: int) -> str:
        r"""The token for people to read: its text, its name if special, `bytes:\xf0\x9f` if it is a part of one."""
        raw = self._bytes_of(id_)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)

    def _bytes_of(self, id_: int) -> bytes:
        known = self._bytes.get(id_)
        if known is None:
            token = self._backend.id_to_token(id_)
            known = self._bytes[id_] = b"" if token is None else self._spelling.bytes_of(token)
        return known

    def _guarded_by(self, guard: str) -> tokenizers.Tokenizer:
        known_guard, backend = self._guarded
        if backend is None or known_guard != guard:
            backend = _twin(self._backend, drop=guard)
            self._guarded = (guard, backend)  # one is enough: the guard hardly ever changes
        return backend


def _ids(backend: tokenizers.Tokenizer, text: str) -> list[int]:
    """As a batch of one: `encode` would keep every other thread waiting, for seconds on a long text."""
    return backend.encode_batch_fast([_well_formed(text)], add_special_tokens=False)[0].ids


def _twin(backend: tokenizers.Tokenizer, *, drop: str | None = None) -> tokenizers.Tokenizer:
    """The same tokenizer, sharing the model's memory; with `drop` it removes that character from ordinary text."""
    twin = tokenizers.Tokenizer(backend.model)
    added = [token for _, token in sorted(backend.get_added_tokens_decoder().items())]
    steps: list[normalizers.Normalizer] = [] if backend.normalizer is None else [backend.normalizer]
    if drop is not None:
        steps.insert(0, normalizers.Replace(drop, ""))
        # A special token that is looked for after normalisation would find its name put together again.
        added = [_before_normalisation(token) if token.special else token for token in added]
    if steps:
        twin.normalizer = normalizers.Sequence(steps)
    if backend.pre_tokenizer is not None:
        twin.pre_tokenizer = backend.pre_tokenizer
    twin.add_tokens(added)
    return twin


def _before_normalisation(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=False,
        special=token.special,
    )


def _well_formed(text: str) -> str:
    """JSON can carry lone surrogates, UTF-8 cannot: each becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
