"""The options of the commands: each has one name, one help sentence and one environment variable, `PACELINE_<NAME>`.

Options that share a name and mean different things have variables of their own, which say whose they are.
"""

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?B?)\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes from "512MB" (powers of 1000), "2GiB" or "2G" (powers of 1024), or a plain number of bytes.

    Raises typer.BadParameter for anything else, and for a size of zero.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 512MB, 2GiB or 1073741824.")
    number, prefix, unit = match.groups()
    base = 1000 if unit.lower() == "b" else 1024
    size = int(float(number) * base ** " KMGT".index(prefix.upper() or " "))
    if size < 1:
        raise typer.BadParameter(f"{text!r} is no memory at all; write a size like 512MB or 2GiB.")
    return size


def parse_concurrency(text: str) -> tuple[int, ...]:
    """The numbers of simultaneous requests from "1,4,8". Raises typer.BadParameter unless all are positive."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of positive numbers; write it like 1,4,8.")
    return tuple(int(part) for part in parts)


def parse_epochs(value: float) -> float:
    """Raises typer.BadParameter unless there is an end to so many, and something to do."""
    if not 0 < value < 1e9:
        raise typer.BadParameter(f"{value:g} is no number of epochs; write one above 0, like 3.")
    return value


def parse_minutes(value: float) -> float:
    """Raises typer.BadParameter for what no clock shows."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value:g} is no number of minutes; write one like 60, or 0 for no limit.")
    return value


def parse_keys(values: list[str] | None) -> list[str] | None:
    """Raises typer.BadParameter for an empty key, as of a variable that is not set: it would guard nothing."""
    if any(not value.strip() for value in values or ()):
        raise typer.BadParameter("a key is empty; write one, or leave the option out to ask for none.")
    return values


def _option(name: str, help_text: str, *, variable: str | None = None, **settings: Any) -> Any:
    return typer.Option(f"--{name}", help=help_text, envvar=variable or _variable(name), **settings)


def _argument(name: str, help_text: str, **settings: Any) -> Any:
    return typer.Argument(help=help_text, envvar=_variable(name), show_default=False, **settings)


def _variable(name: str) -> str:
    return "PACELINE_" + name.upper().replace("-", "_")


Model = Annotated[
    str | None,
    _argument(
        "model",
        "A name the server knows, a .gguf file, a Hugging Face folder, or a hub id. Default: smollm2-135m-instruct.",
    ),
]
ServerURL = Annotated[str, _argument("url", "Address of the server, with or without /v1.")]

# What runs, and with how much of the machine
Speculator = Annotated[
    str,
    _option(
        "speculator",
        "Who guesses ahead: auto (all that fit the model), none, or names and folders of drafters with commas between; "
        "a name wins over a folder called so, which is then ./name.",
    ),
]
MaxBatch = Annotated[int, _option("max-batch", "Most sequences in one step.", min=1)]
StepBudget = Annotated[int, _option("step-budget", "Most rows (tokens and guesses) in one step.", min=1)]
MaxNodes = Annotated[int, _option("max-nodes", "Most rows of one token tree, its root included.", min=1, max=64)]
QueueLimit = Annotated[int, _option("queue-limit", "Requests that may wait before others are refused.", min=1)]
ContextLength = Annotated[
    int | None, _option("context-length", "Most tokens of one conversation; default: what the model allows.", min=2)
]
KVMemory = Annotated[
    int | None,
    _option("kv-memory", "Memory for cached keys and values, like 512MB.", parser=parse_size, metavar="SIZE"),
]
Threads = Annotated[int | None, _option("threads", "CPU threads for the model; default: one per core.", min=1)]
Device = Annotated[Literal["auto", "cpu", "cuda"], _option("device", "Where the model runs.")]
Backend = Annotated[
    Literal["auto", "native", "triton", "reference"],
    _option("backend", "Kernels that run the model: C++ on a CPU, Triton on a GPU, or plain torch; auto: the best."),
]
Weights = Annotated[
    Literal["stored", "q4", "q4_128", "q8", "q8_128", "bf16", "f16", "f32"],
    _option("weights", "Format the weights are kept in; stored keeps every value of the checkpoint."),
]
Activations = Annotated[
    Literal["mixed", "int8", "int16"],
    _option("activations", "Precision of what 4- and 8-bit weights are multiplied with in the native kernels."),
]
KVFormat = Annotated[
    Literal["auto", "f16", "bf16", "int8", "fp8"],
    _option("kv-format", "Format of cached keys and values; auto: 16-bit floats. bf16 and fp8 are for GPUs."),
]
Exact = Annotated[
    bool,
    _option("exact", "On a GPU compute prompts to the bit as single tokens are, which takes longer."),
]
Cache = Annotated[
    Path | None,
    _option("cache", "Folder for fetched models; default: paceline in the user's cache folder.", file_okay=False),
]

# Who can reach it
Host = Annotated[str, _option("host", "Address to listen on; 0.0.0.0 opens the server to the network.")]
Port = Annotated[int, _option("port", "TCP port to listen on; 0 picks a free one.", min=0, max=65535)]
_API_KEY = "Key that clients must send, without limits (and that chat and bench send); serve takes several."
APIKey = Annotated[str | None, _option("api-key", _API_KEY, show_default=False)]
APIKeys = Annotated[list[str] | None, _option("api-key", _API_KEY, show_default=False, callback=parse_keys)]
KeysFile = Annotated[
    Path | None, _option("keys", "File of keys with limits, made by `paceline keys`.", dir_okay=False, metavar="FILE")
]
MaxConnections = Annotated[int, _option("max-connections", "Most connections at once, sockets included.", min=1)]
MaxPerAddress = Annotated[
    int, _option("max-connections-per-address", "Most of them from one address; a proxy has only one.", min=1)
]
MaxSocketsPerKey = Annotated[int, _option("max-sockets-per-key", "Most WebSockets of one key.", min=1)]
Compress = Annotated[
    bool, _option("compress", "Compress WebSocket messages, for slow networks; takes memory for each socket.")
]
DrainSeconds = Annotated[
    float, _option("drain", "Seconds that running replies get to finish when the server is told to stop.", min=0.0)
]
AllowOrigin = Annotated[
    list[str] | None,
    _option("allow-origin", "Browser origin that may use the server besides its own page; repeat it for more."),
]
AllowHost = Annotated[
    list[str] | None,
    _option("allow-host", "Name in the Host header that is served besides localhost; repeat it for more."),
]
ModelID = Annotated[str | None, _option("model-id", "Name under which the model is served; default: its own name.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    _option("log-level", "How much is logged; info has a line for each reply, never its text."),
]
LogForm = Annotated[Literal["text", "json"], _option("log-format", "Form of a line of the log.")]

# Keys
KeyStore = Annotated[Path, _option("keys", "File of keys with limits, made by `paceline keys`.", metavar="FILE")]

KeyConcurrency = Annotated[
    int | None,
    _option("concurrency", "Most replies at once with this key.", variable="PACELINE_KEY_CONCURRENCY", min=1),
]
KeyTokens = Annotated[
    int | None,
    _option(
        "tokens-per-minute",
        "Most tokens a minute with this key: of prompts, where they are not cached, and of replies.",
        min=1,
    ),
]
KeyPriority = Annotated[
    Literal["interactive", "normal", "background"],
    _option("priority", "The best latency class that replies with this key may have."),
]

# Chat and bench
System = Annotated[str | None, _option("system", "Instructions for the model that stand before the conversation.")]
Prompts = Annotated[
    Path, _option("prompts", "JSONL with turns, prompt or messages, or one prompt a line.", exists=True, dir_okay=False)
]
Concurrency = Annotated[
    Any,
    _option(
        "concurrency", "Simultaneous requests, one run each, like 1,4,8.", parser=parse_concurrency, metavar="LIST"
    ),
]
MaxTokens = Annotated[int, _option("max-tokens", "Most tokens of one reply.", min=1)]
Limit = Annotated[int | None, _option("limit", "Use only so many prompts, spread over their categories.", min=1)]
Turns = Annotated[Literal["first", "all"], _option("turns", "Ask only the first turn of a prompt, or all of them.")]
ChatMaxTokens = Annotated[int | None, _option("max-tokens", "Most tokens of one reply.", min=1)]
ServedModel = Annotated[
    str | None, _option("model", "Model to ask for; default: the first the server lists.", variable="PACELINE_MODEL_ID")
]
Temperature = Annotated[float, _option("temperature", "Sampling temperature; 0 is greedy.", min=0.0)]
Seed = Annotated[int, _option("seed", "Seed sent with every request.", min=0)]
Speculation = Annotated[
    str | None, _option("speculation", "Send Paceline's extension: auto, none, or a drafter's name.")
]
Compare = Annotated[
    bool,
    _option("compare", "Ask every prompt without and with speculation, in turn, and compare speed and text."),
]
Timeout = Annotated[float, _option("timeout", "Seconds after which a request counts as failed.", min=0.1)]
JSONFile = Annotated[Path | None, _option("json", "Write all figures and replies to this file.", dir_okay=False)]
CSVFile = Annotated[Path | None, _option("csv", "Append one row per run to this file.", dir_okay=False)]
DeviceName = Annotated[
    str | None, _option("device-name", "What the server runs on, for the records; default: this machine's processor.")
]

# Train
Out = Annotated[
    Path, _option("out", "Folder for the drafter; a run that was interrupted goes on in it.", file_okay=False)
]
TrainTokens = Annotated[int, _option("tokens", "How much text to learn from, in tokens; three texts at least.", min=1)]
DraftVocab = Annotated[int, _option("vocab", "How many of the model's tokens can be guessed: the commonest.", min=1)]
DraftLayers = Annotated[int, _option("layers", "How many of the model's layers the draft model starts from.", min=1)]
Epochs = Annotated[float, _option("epochs", "How often all text is learned.", callback=parse_epochs)]
Minutes = Annotated[
    float,
    _option("minutes", "Most minutes of training, writing not counted; 0: no limit.", min=0.0, callback=parse_minutes),
]
TrainSeed = Annotated[
    int,
    _option(
        "seed",
        "The same seed gives the same texts and the same order.",
        variable="PACELINE_TRAIN_SEED",
        min=0,
        max=2**63 - 1,
    ),
]
SeedPrompts = Annotated[
    Path | None,
    _option(
        "prompts",
        "Prompts that the model shall answer first, one a line.",
        variable="PACELINE_TRAIN_PROMPTS",
        exists=True,
        dir_okay=False,
    ),
]
LoggedText = Annotated[
    Path | None,
    _option("text", "JSONL of conversations that were held: messages, or text.", exists=True, dir_okay=False),
]
StartDrafter = Annotated[
    Path | None,
    _option("start", "Folder of a drafter of this kind that is trained further.", exists=True, file_okay=False),
]
DrafterFolder = Annotated[Path, _argument("drafter", "The drafter's folder.", exists=True, file_okay=False)]
