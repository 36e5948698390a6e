"""The `paceline` command: serve, chat, fetch, bench; train and keys have files of their own.

Commands import what they need when they run: `paceline --help` and a mistyped flag answer at once.
Every expected failure is one sentence on standard error: exit code 2 for a wrong command line, 1 for the rest.
"""

import logging.config
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from paceline.engine.config import EngineConfig
from paceline.engine.errors import PacelineError
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve

from . import options as o
from .address import DEFAULT_PORT, DEFAULT_URL, is_this_machine
from .keys_command import keys_app
from .logs import log_config
from .terminal import fetch_progress, notices, output, say_error
from .train_command import train_app

app = typer.Typer(
    name="paceline",
    help="A low-latency chat server for language models, with speculative decoding at its centre.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(train_app)
app.add_typer(keys_app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process) and return its exit code; an empty one asks for the help."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=given or ["--help"], prog_name="paceline", standalone_mode=False)
    except typer.TyperException as error:
        say_error(_usage_sentence(error))
        return error.exit_code
    except PacelineError as error:
        say_error(str(error))
        return 1
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _usage_sentence(error: typer.TyperException) -> str:
    """The parser's message and where to look further, in one line."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "paceline"
    end = "" if message.endswith((".", "?", "!")) else "."
    return f"{message}{end} See `{command} --help`."


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        output().print(importlib.metadata.version("paceline"))
        raise typer.Exit


@app.callback()
def _paceline(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command()
def serve(
    model: o.Model = None,
    host: o.Host = "127.0.0.1",
    port: o.Port = DEFAULT_PORT,
    speculator: o.Speculator = "auto",
    max_batch: o.MaxBatch = 16,
    step_budget: o.StepBudget = 512,
    max_nodes: o.MaxNodes = 16,
    queue_limit: o.QueueLimit = 256,
    context_length: o.ContextLength = None,
    kv_memory: o.KVMemory = None,
    threads: o.Threads = None,
    device: o.Device = "auto",
    backend: o.Backend = "auto",
    weights: o.Weights = "stored",
    activations: o.Activations = "mixed",
    kv_format: o.KVFormat = "auto",
    exact: o.Exact = False,
    api_key: o.APIKeys = None,
    keys: o.KeysFile = None,
    model_id: o.ModelID = None,
    allow_origin: o.AllowOrigin = None,
    allow_host: o.AllowHost = None,
    max_connections: o.MaxConnections = 4096,
    max_connections_per_address: o.MaxPerAddress = 1024,
    max_sockets_per_key: o.MaxSocketsPerKey = 256,
    compress: o.Compress = False,
    drain: o.DrainSeconds = 20.0,
    cache: o.Cache = None,
    log_level: o.LogLevel = "warning",
    log_format: o.LogForm = "text",
) -> None:
    """Serve a model; the default one is fetched when it is not in the cache."""
    config = EngineConfig(
        max_batch=max_batch,
        step_budget=step_budget,
        context_length=context_length,
        kv_memory=kv_memory,
        threads=threads,
        device=device,
        backend=backend,
        weights=weights,
        activations=activations,
        kv_format=kv_format,
        exact=exact,
        speculator=speculator,
        max_nodes=max_nodes,
        queue_limit=queue_limit,
    )
    from .context import Settings
    from .page import is_built
    from .service import Service
    from .serving import serve as listen

    served_id = model_id or _name_of(model)

    def build() -> Service:
        path = _resolve(model, cache)
        with notices().status(f"Loading {served_id} …"):
            service = Service.build(path, cache or default_cache(), config, served_id)
        if service.short_context is not None:
            notices().print(service.short_context, style="yellow")
        return service

    ready = False

    def announce(url: str) -> None:
        nonlocal ready
        ready = True
        use = "open it in a browser" if is_built() else "the API alone, since its page is not built (make page)"
        output().print(f"{served_id} is served at [bold]{url}[/bold]: {use}. Ctrl-C stops the server.")
        if not (api_key or keys or is_this_machine(host)):
            notices().print(
                "Everyone who can reach this machine can use it; --keys or --api-key asks for a key.", style="yellow"
            )

    logging.config.dictConfig(log_config(log_level, log_format))
    settings = Settings(
        api_keys=tuple(api_key or ()),
        keys=keys,
        allowed_origins=tuple(allow_origin or ()),
        allowed_hosts=tuple(allow_host or ()),
        max_connections=max_connections,
        max_connections_per_address=max_connections_per_address,
        max_sockets_per_key=max_sockets_per_key,
        compress=compress,
        drain_s=drain,
        log_level=log_level,
    )
    try:
        listen(build, settings, port=port, host=host, on_ready=announce)
    except KeyboardInterrupt:
        if not ready:  # once it serves, Ctrl-C is the ordinary end
            raise


@app.command()
def fetch(model: o.Model = None, cache: o.Cache = None) -> None:
    """Fetch a model into the cache, so that `serve` starts at once, also without a network."""
    output().print(str(_resolve(model, cache)), markup=False)


@app.command()
def chat(
    target: Annotated[
        str,
        typer.Argument(metavar="[URL|MODEL]", envvar="PACELINE_URL", help="A server's address, or a model it serves."),
    ] = DEFAULT_URL,
    model: o.ServedModel = None,
    system: o.System = None,
    temperature: o.Temperature = 0.2,  # what the default model's card recommends; at 1 a small model talks nonsense
    max_tokens: o.ChatMaxTokens = None,
    api_key: o.APIKey = None,
) -> None:
    """Talk to a running server.

    /new starts afresh, // begins a message with a slash. After a reply, "accepted per step" counts guesses alone.
    """
    from .chat_client import Conversation
    from .chat_client import chat as converse

    is_url = ":" in target  # a model's name has neither a scheme nor a port
    url = target if is_url else DEFAULT_URL
    served = model or (None if is_url else target) or "default"

    def connect() -> Conversation:
        return Conversation(
            url, model=served, api_key=api_key, instructions=system, temperature=temperature, max_tokens=max_tokens
        )

    converse(connect, output())


@app.command()
def bench(
    url: o.ServerURL,
    prompts: o.Prompts,
    concurrency: o.Concurrency = "1",
    max_tokens: o.MaxTokens = 128,
    limit: o.Limit = None,
    turns: o.Turns = "first",
    model: o.ServedModel = None,
    temperature: o.Temperature = 0.0,
    seed: o.Seed = 0,
    speculation: o.Speculation = None,
    compare: o.Compare = False,
    api_key: o.APIKey = None,
    timeout: o.Timeout = 600.0,
    device_name: o.DeviceName = None,
    json: o.JSONFile = None,
    csv: o.CSVFile = None,
) -> None:
    """Measure a server from outside: time to first token, time per token, tokens per second.

    Any OpenAI-compatible server will do; from Paceline it also reports how many tokens a step accepted, where
    "accepted length" counts the model's own token too, and only steps with guesses.
    """
    from .bench import BenchOptions, run_bench

    settings = BenchOptions(
        url=url,
        prompts=prompts,
        concurrency=concurrency,
        max_tokens=max_tokens,
        limit=limit,
        all_turns=turns == "all",
        model=model,
        temperature=temperature,
        seed=seed,
        speculation=speculation or "",
        compare=compare,
        timeout_s=timeout,
        api_key=api_key,
        device=device_name,
        json=json,
        csv=csv,
    )
    raise typer.Exit(run_bench(settings, output(), notices()))


def _resolve(model: str | None, cache: Path | None) -> Path:
    with fetch_progress() as report:
        return resolve(model or DEFAULT_MODEL, cache or default_cache(), report)


def _name_of(model: str | None) -> str:
    """The id a model is served under: its name, or that of its file or folder."""
    if not model:
        return DEFAULT_MODEL
    path = Path(model).expanduser()
    if not path.exists():
        return model
    return path.resolve().name.removesuffix(".gguf")
