"""Those who are measured against each other: servers spoken to over HTTP, and libraries in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gguf import GGUFReader
from harness import LaunchError, cpu_seconds, free_port, launched, serving

from paceline.server.bench_client import Client, Reply
from paceline.server.tokenizer import Tokenizer

PLAIN = "plain"
_WORKER = Path(__file__).with_name("peer_worker.py")
_START_S = 300.0


class MissingError(Exception):
    """A peer that cannot be measured here; the text says what it needs."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation, as messages and as the tokens our template makes of them."""

    messages: tuple[Mapping[str, Any], ...]
    ids: tuple[int, ...]


class Contender(Protocol):
    """One way to decode the same weights; `mode` is PLAIN or a way of speculating."""

    @property
    def peer(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def weights(self) -> str: ...
    @property
    def mode(self) -> str: ...
    async def ask(self, case: Case, max_tokens: int) -> Reply:
        """Greedy. What fails is told in `Reply.error`."""
        ...

    def cpu_s(self) -> float:
        """Processor time used so far; 0 where it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class OverHTTP:
    """A server with the chat completions endpoint."""

    peer: str
    version: str
    weights: str
    mode: str
    client: Client
    settings: Mapping[str, Any]
    pid: int | None = None

    async def ask(self, case: Case, max_tokens: int) -> Reply:
        return await self.client.ask(
            case.messages, {**self.settings, "max_tokens": max_tokens, "temperature": 0.0, "seed": 0}
        )

    def cpu_s(self) -> float:
        return 0.0 if self.pid is None else cpu_seconds(self.pid)


@dataclass(frozen=True, slots=True)
class OverPipes:
    """A library in a process of its own. It gets tokens and tells its own times: no HTTP, no text."""

    peer: str
    version: str
    weights: str
    mode: str
    process: Process
    tokenizer: Tokenizer

    async def ask(self, case: Case, max_tokens: int) -> Reply:
        request = {"ids": case.ids, "max_tokens": max_tokens, "stop_ids": self.tokenizer.eos_ids}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        line = await self.process.stdout.readline()
        if not line:
            return Reply(error="the process ended")
        answer = json.loads(line)
        return Reply(
            ttft=answer["first"] or answer["total"],
            end=answer["total"],
            text=self.tokenizer.decode(answer["ids"]),
            tokens=answer["count"],
            tokens_from="usage",
            prompt_tokens=len(case.ids),
        )

    def cpu_s(self) -> float:
        return cpu_seconds(self.process.pid)


@asynccontextmanager
async def paceline(
    model: str, weights: str, threads: int, mode: str, options: Sequence[str]
) -> AsyncIterator[OverHTTP]:
    """Our own server. Every mode has one of its own, so that no mode finds the prompts of another in its cache."""
    with serving(model, "--threads", str(threads), *options) as server:
        async with Client(server.url) as client:
            speculation = {"mode": "none" if mode == PLAIN else mode}
            settings = {"model": await client.first_model(), "speculation": speculation}
            yield OverHTTP("paceline", "", weights, mode, client, settings, server.pid)


@asynccontextmanager
async def llama_cpp(binary: Path | None, model: Path, weights: str, threads: int, mode: str) -> AsyncIterator[OverHTTP]:
    """llama-server; a mode other than PLAIN is a value of its --spec-type. Raises MissingError."""
    if binary is None or not binary.is_file():
        raise MissingError(
            "there is no llama-server: build it from the llama-cpp-python source package (vendor/llama.cpp, cmake "
            "-DGGML_NATIVE=ON -DLLAMA_CURL=OFF, target llama-server) and name it with --llama-server or LLAMA_SERVER"
        )
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(binary), "--model", str(model), "--host", "127.0.0.1", "--port", str(port), "--parallel", "1"]
    command += ["--threads", str(threads), "--threads-batch", str(threads), "--ctx-size", "8192", "--cache-ram", "0"]
    if mode != PLAIN:
        command += ["--spec-type", mode]
    try:
        with launched(command, f"{url}/health") as (process, _):
            async with Client(url) as client:
                # Its other samplers would cost it time and choose the same token.
                settings = {"model": await client.first_model(), "cache_prompt": False, "samplers": ["temperature"]}
                yield OverHTTP("llama.cpp", _build_of(binary), weights, mode, client, settings, process.pid)
    except LaunchError as error:
        raise MissingError(str(error)) from error


@asynccontextmanager
async def library(
    kind: str, python: str, model: Path, weights: str, threads: int, mode: str, tokenizer: Tokenizer
) -> AsyncIterator[OverPipes]:
    """transformers or OpenVINO GenAI in the Python that has it. Raises MissingError."""
    # Without our PYTHONPATH: transformers probes for a module named `kernels`, and finds the benchmark of that name.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads), "PYTHONSAFEPATH": "1"}
    with tempfile.TemporaryFile() as log:
        try:
            process = await asyncio.create_subprocess_exec(
                python, str(_WORKER), kind, str(model), str(threads), mode,
                stdin=PIPE, stdout=PIPE, stderr=log, env=environment, limit=1 << 24,
            )  # fmt: skip
        except OSError as error:
            raise MissingError(f"{python} cannot be run ({error.strerror})") from error
        try:
            assert process.stdout
            line = await asyncio.wait_for(process.stdout.readline(), _START_S)
            if not line:
                log.seek(0)
                lines = log.read().decode(errors="replace").split("\n")
                raise MissingError(next((each for each in reversed(lines) if each.strip()), "it ended without a word"))
            yield OverPipes(kind, json.loads(line)["version"], weights, mode, process, tokenizer)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@asynccontextmanager
async def given(name: str, url: str) -> AsyncIterator[OverHTTP]:
    """A server that someone else runs."""
    async with Client(url) as client:
        yield OverHTTP(name, "", "", PLAIN, client, {"model": await client.first_model()})


def _build_of(binary: Path) -> str:
    """What llama-server calls itself, such as "1 (abcdef0)"."""
    run = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    lines = (run.stdout + run.stderr).splitlines()
    return next((line.removeprefix("version: ") for line in lines if line.startswith("version: ")), "")


def weights_of(model: Path) -> str:
    """The element type most of a GGUF file's bytes have."""
    sizes: Counter[str] = Counter()
    for tensor in GGUFReader(model).tensors:
        sizes[tensor.tensor_type.name] += int(tensor.n_bytes)
    return sizes.most_common(1)[0][0]


def has_module(python: str, module: str) -> bool:
    """Whether `python` would find `module`; False where there is no such Python."""
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-P", "-c", probe], check=False, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False
