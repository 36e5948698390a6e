"""Models and prompts of the device check: none is fetched, and large ones are made at the speed of memory."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.engine.model.assets import TextAssets
from paceline.engine.model.config import ModelConfig, RopeConfig
from paceline.engine.model.dequantize import BLOCK, dequantize, row_bytes
from paceline.engine.model.weights import ModelWeights, expected_tensors, load_weights
from paceline.kernels import bfloat16

LLAMA_8B = ModelConfig(
    family="llama",
    vocab_size=128_256,
    hidden_size=4096,
    intermediate_size=14_336,
    num_layers=32,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    rms_norm_eps=1e-5,
    context_length=8192,
    rope=RopeConfig(theta=500_000.0),
    tie_embeddings=False,
    qkv_bias=False,
    qk_norm=False,
)
SMOLLM2 = replace(
    LLAMA_8B,
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    rope=RopeConfig(theta=100_000.0),
    tie_embeddings=True,
)
TINY = replace(
    LLAMA_8B,
    vocab_size=48,
    hidden_size=32,
    intermediate_size=32,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=16,
    context_length=64,
)

_DRAWN = (1 << 20) + 7  # values drawn at random; a prime-ish period keeps rows from being alike
_KINDS = {"Q4_0": 16, "Q8_0": 32}  # bytes of a block behind its scale


class RandomModel:
    """A decoder of any size whose bfloat16 matrices all come from one piece of random values, over and over.

    Values have the deviation H^-0.5: normed rows give products about as large as they are. Implements `Checkpoint`.
    """

    name = "random"
    fingerprint = "random"
    text = TextAssets(tokenizer_json=None, gguf=None, chat_template=None, bos_token=None, eos_token=None, eos_ids=())

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        self.config = config
        self._shapes = expected_tensors(config)
        drawn = np.random.default_rng(seed).standard_normal(_DRAWN, np.float32) * np.float32(config.hidden_size**-0.5)
        most = max(int(np.prod(shape)) for shape in self._shapes.values())
        self._bits = np.resize(bfloat16.narrow(drawn), most + _DRAWN)

    def load(self) -> ModelWeights:
        return load_weights(self.config, self)

    def close(self) -> None:
        pass

    def kind(self, name: str) -> str:
        return "BF16"

    def raw(self, name: str) -> NDArray[np.uint8]:
        rows, columns = self._shapes[name]
        first = zlib.crc32(name.encode()) % _DRAWN
        return self._bits[first : first + rows * columns].reshape(rows, columns).view(np.uint8)

    def read(self, name: str, first: int, out: NDArray[np.float32]) -> None:
        if len(self._shapes[name]) == 1:
            out[...] = 1.0  # norms
        else:
            bfloat16.widen(self.raw(name).view(np.uint16)[first : first + len(out)], out)

    @property
    def pass_bytes(self) -> int:
        """Bytes of the matrices that a pass reads whole: all but the embeddings, of which it reads its rows alone."""
        sizes = {name: 2 * int(np.prod(shape)) for name, shape in self._shapes.items() if len(shape) == 2}
        if not self.config.tie_embeddings:
            del sizes["model.embed_tokens.weight"]
        return sum(sizes.values())


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix as a checkpoint holds it. Implements `Matrix` and, as its only part, `Stored`."""

    kind: str
    shape: tuple[int, int]
    data: NDArray[np.uint8]  # [N, bytes per row]
    name: str = "random"

    @classmethod
    def random(cls, kind: str, rows: int, columns: int, seed: int = 0) -> StoredMatrix:
        """kind: BF16, F16, or one that quantises in blocks. Values have about the deviation columns^-0.5."""
        rng = np.random.default_rng(seed)
        if kind in _KINDS:
            block = np.empty((4099, 2 + _KINDS[kind]), np.uint8)
            levels = 4.6 if kind == "Q4_0" else 74  # the deviation of what the bytes stand for
            scales = (columns**-0.5 / levels * rng.uniform(0.5, 1.5, len(block))).astype(np.float16)
            block[:, :2] = scales[:, None].view(np.uint8)
            block[:, 2:] = rng.integers(0, 256, block[:, 2:].shape, np.uint8)
            data = np.resize(block, (rows * columns // BLOCK, block.shape[1]))
        else:
            drawn = rng.standard_normal(_DRAWN, np.float32) * np.float32(columns**-0.5)
            values = bfloat16.narrow(drawn) if kind == "BF16" else drawn.astype(np.float16)
            data = np.resize(values, rows * columns).view(np.uint8)
        return cls(kind, (rows, columns), data.reshape(rows, row_bytes(kind, columns)))

    @property
    def parts(self) -> tuple[StoredMatrix]:
        return (self,)

    def raw(self) -> NDArray[np.uint8]:
        return self.data

    def read(self, first: int, out: NDArray[np.float32]) -> None:
        dequantize(np.ascontiguousarray(self.data[first : first + len(out)]), self.kind, out)


_TOPICS = ("rivers", "bread", "the moon", "bicycles", "bees", "chess", "rain", "trains", "music", "old maps")
_TASKS = (
    "Explain {} to a child.",
    "List three facts about {}, one in each line.",
    "Write a short poem about {}.",
    "Repeat this five times: I like {} because they make the day brighter, whatever the weather may be.",
    "Write a Python function that prints a small table about {}.",
)


def prompts(text: TextAssets, vocab_size: int, count: int, longest: int) -> list[tuple[int, ...]]:
    """Different prompts: questions where the model has a vocabulary, else repeated phrases of `longest` at most."""
    vocabulary = (text.gguf or {}).get("tokenizer.ggml.tokens")
    if vocabulary is None:
        lengths = [longest - 37 * number % longest for number in range(count)]
        return [_phrase(random.Random(number), vocab_size, length) for number, length in enumerate(lengths)]
    ids = {token: number for number, token in enumerate(vocabulary)}
    asked = [task.format(topic) for topic in _TOPICS for task in _TASKS][:count]
    return [_encoded(ids, ("<|im_start|>", f"user\n{question}", "<|im_end|>", "\n")) for question in asked]


def _phrase(pick: random.Random, vocab_size: int, length: int) -> tuple[int, ...]:
    phrase = [pick.randrange(vocab_size) for _ in range(pick.randint(3, 9))]
    return tuple((phrase * length)[:length])


def _encoded(ids: dict[str, int], pieces: Sequence[str]) -> tuple[int, ...]:
    """The longest tokens that fit, from left to right: not always those a tokenizer chooses, but the same text."""
    tokens = []
    for piece in pieces:
        left = piece.replace(" ", "Ġ").replace("\n", "Ċ")
        while left:
            size = next((size for size in range(len(left), 0, -1) if left[:size] in ids), 0)
            if size:  # a vocabulary of another kind may lack a letter
                tokens.append(ids[left[:size]])
            left = left[size or 1 :]
    return tuple(tokens)


def bushy(nodes: int) -> tuple[int, ...]:
    """Parents of a tree in which each node has two children."""
    return tuple((node - 1) // 2 if node else -1 for node in range(nodes))


def depths(parents: Sequence[int]) -> list[int]:
    found: list[int] = []
    for parent in parents:
        found.append(found[parent] + 1 if parent >= 0 else 0)
    return found
