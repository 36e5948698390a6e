"""A library that decodes in this process, asked over pipes: `python peer_worker.py KIND MODEL.gguf THREADS MODE`.

Started by peers.py in whatever Python has the library, so it imports nothing else. One JSON object a line: in
{"ids", "max_tokens", "stop_ids"}, out {"ids", "first", "total", "count"}, times in seconds since the request was read.
KIND is transformers or openvino; MODE plain, or lookup for the library's own prompt lookup decoding.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Generate = Callable[[list[int], int, list[int], Callable[[int], None]], list[int]]  # ids, max_tokens, stop_ids, seen
_GUESSES = 5
_NGRAM = 3


def transformers_generate(model: Path, threads: int, lookup: bool) -> tuple[str, Generate]:
    """float32 from the file's dequantised weights: the library has no kernels for them."""
    import torch
    import transformers
    from transformers.generation.streamers import BaseStreamer

    torch.set_num_threads(threads)
    loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
        model.parent, gguf_file=model.name, dtype=torch.float32
    )
    loaded.eval()

    class Streamer(BaseStreamer):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def __init__(self, seen: Callable[[int], None]) -> None:
            self.seen = seen
            self.prompt = True

        def put(self, value: torch.Tensor) -> None:
            if not self.prompt:
                self.seen(value.numel())
            self.prompt = False

        def end(self) -> None:
            pass

    def generate(ids: list[int], max_tokens: int, stop_ids: list[int], seen: Callable[[int], None]) -> list[int]:
        prompt = torch.tensor([ids])
        with torch.inference_mode():
            out = loaded.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=max_tokens,
                do_sample=False,
                eos_token_id=stop_ids,
                pad_token_id=stop_ids[0],
                streamer=Streamer(seen),
                **({"prompt_lookup_num_tokens": _GUESSES} if lookup else {}),
            )
        tokens: list[int] = out[0, len(ids) :].tolist()
        return tokens

    return transformers.__version__, generate


def openvino_generate(model: Path, threads: int, lookup: bool) -> tuple[str, Generate]:
    """The file's own 4-bit weights: OpenVINO GenAI reads GGUF."""
    import numpy as np
    import openvino  # type: ignore[import-not-found, unused-ignore]
    import openvino_genai as genai  # type: ignore[import-not-found, unused-ignore]

    options: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads}
    if lookup:
        options["prompt_lookup"] = True
    pipeline = genai.LLMPipeline(str(model), "CPU", **options)

    class Streamer(genai.StreamerBase):  # type: ignore[misc, no-any-unimported, name-defined, unused-ignore]
        def __init__(self, seen: Callable[[int], None]) -> None:
            super().__init__()
            self.seen = seen

        def write(self, token: int | list[int]) -> Any:
            self.seen(len(token) if isinstance(token, list) else 1)
            return genai.StreamingStatus.RUNNING

        def end(self) -> None:
            pass

    def generate(ids: list[int], max_tokens: int, stop_ids: list[int], seen: Callable[[int], None]) -> list[int]:
        config = genai.GenerationConfig()
        config.max_new_tokens = max_tokens
        config.do_sample = False
        config.stop_token_ids = set(stop_ids)
        config.eos_token_id = stop_ids[0]
        if lookup:
            config.num_assistant_tokens, config.max_ngram_size = _GUESSES, _NGRAM
        prompt = np.array([ids], dtype=np.int64)
        inputs = genai.TokenizedInputs(openvino.Tensor(prompt), openvino.Tensor(np.ones_like(prompt)))
        return [int(token) for token in pipeline.generate(inputs, config, Streamer(seen)).tokens[0]]

    return genai.__version__.partition("-")[0], generate


def main(kind: str, model: Path, threads: int, mode: str) -> None:
    build = {"transformers": transformers_generate, "openvino": openvino_generate}[kind]
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries print
    version, generate = build(model, threads, mode == "lookup")
    print(json.dumps({"version": version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        first = 0.0
        count = 0

        def seen(tokens: int, start: float = start) -> None:
            nonlocal first, count
            first = first or time.perf_counter() - start
            count += tokens

        ids = generate(request["ids"], request["max_tokens"], request["stop_ids"], seen)
        total = time.perf_counter() - start
        print(json.dumps({"ids": ids, "first": first, "total": total, "count": count}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
