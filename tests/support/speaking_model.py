"""A tiny model that says what its scripts say, in tokens cut anywhere: calls, thoughts, split characters really occur.

Each token of a script is one token of its vocabulary that nothing else uses, and its layers add nothing: what comes
next depends on the last token alone. A request chooses its script by a bias for the script's first token.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from tiny_models import SPECIAL, make_folder, tokenizer_json, vocabulary, write_json

SCRIPTS: Mapping[str, str] = {
    "words": "The quick brown fox jumps over the lazy dog. STOP right there, said nobody at all.",
    "scripts": "Žluťoučký kůň 👩‍👩‍👧 pěl: 你好，世界。 Ďábelské ódy 🎉🎉 konec.",
    "call": 'Let me see.\n<tool_call>\n{"name": "look_up", "arguments": {"city": "Žďár", "days": 3}}\n</tool_call>',
    "calls": '<tool_call>\n{"name": "look_up", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "add", "arguments": {"a": [1, 2.5], "b": null}}\n</tool_call>\n'
    '<tool_call>\n{"name": "look_up", "arguments": {"city": "Lima 🎉"}}\n</tool_call>',
    "malformed": 'So <tool_call> is a mark, and <tool_call>\n{"name": 7}\n</tool_call> no call; 1 < 2 </tool.',
    "thoughts": "<think>\nShe asks for a river. The Loire is one; </thin, hm, is no end.\n</think>\n\nThe Loire.",
    "thoughtful call": "<think>\nI must look.\n</think>\n\n"
    '<tool_call>\n{"name": "look_up", "arguments": {"city": "Nice"}}\n</tool_call>',
}
_SHARPNESS = 30.0  # the logit of what comes next; all others are far below
_SEED = 5
_HIDDEN = 256
_END = SPECIAL.index("<|im_end|>")


class Scripts:
    """openings: the first token of each script, to be preferred by a request that wants it said."""

    def __init__(self) -> None:
        pick = random.Random(_SEED)
        self.vocabulary = vocabulary()
        self.lines = {name: self._tokens(text.encode(), pick) for name, text in SCRIPTS.items()}
        self.openings = {name: line[0] for name, line in self.lines.items()}

    def _tokens(self, data: bytes, pick: random.Random) -> list[int]:
        """Ids of `data`, cut anywhere, also inside characters, into tokens that are new."""
        while len(set(tokens := _cut(data, pick)) - set(self.vocabulary)) < len(tokens):
            pass
        first = len(self.vocabulary)
        self.vocabulary += tokens
        return [*range(first, first + len(tokens))]


def _cut(data: bytes, pick: random.Random) -> list[str]:
    places = [0]
    while places[-1] < len(data):
        places.append(min(places[-1] + pick.randint(2, 6), len(data)))
    letters = _letters()
    return ["".join(letters[byte] for byte in data[a:b]) for a, b in itertools.pairwise(places)]


def _letters() -> dict[int, str]:
    """How byte-level vocabularies spell each byte (Radford et al. 2019, encoder.py)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def make_speaking_folder(folder: Path, template: str, *, context_length: int = 2048) -> Scripts:
    """A complete Hugging Face folder."""
    scripts = Scripts()
    size = len(scripts.vocabulary)
    make_folder(folder, "llama2", vocab_size=size, hidden_size=_HIDDEN, max_position_embeddings=context_length)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    for name, tensor in tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensor.zero_()
        elif "norm" in name:
            tensor.fill_(1.0)
    embedding, head = tensors["model.embed_tokens.weight"], tensors["lm_head.weight"]
    unit = embedding / embedding.norm(dim=1, keepdim=True)
    head *= 0.1  # below every next token
    for line in scripts.lines.values():
        for token, following in zip(line, [*line[1:], _END], strict=True):
            head[following] += unit[token] * _SHARPNESS / _HIDDEN**0.5  # hidden states have this length
    save_file(tensors, file, metadata={"format": "pt"})
    tokenizer = json.loads(tokenizer_json())
    tokenizer["model"]["vocab"] = {token: i for i, token in enumerate(scripts.vocabulary)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", settings | {"chat_template": template})
    return scripts
