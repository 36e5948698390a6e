"""The command group `paceline keys`: gives out keys, lists and removes them. A running server sees it at once."""

import time
from typing import Annotated

import typer

from . import options as o
from .key_file import KeyFile
from .limits import Allowance
from .terminal import notices, output

keys_app = typer.Typer(
    name="keys",
    help="Give out keys with limits, list and remove them; `paceline serve --keys FILE` asks for them.",
    no_args_is_help=True,
)
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is; logs show it.")]


@keys_app.command()
def add(
    name: KeyName,
    keys: o.KeyStore,
    concurrency: o.KeyConcurrency = None,
    tokens_per_minute: o.KeyTokens = None,
    priority: o.KeyPriority = "interactive",
) -> None:
    """Make a key and print it; it is kept nowhere, and cannot be shown again."""
    allowance = Allowance(concurrency=concurrency, tokens_per_minute=tokens_per_minute, priority=priority)
    key = KeyFile(keys).add(name, allowance)
    notices().print(f"This is the key of {name}; it cannot be shown again.", style="yellow")
    output().print(key, markup=False, highlight=False, soft_wrap=True)


@keys_app.command("list")
def list_keys(keys: o.KeyStore) -> None:
    """Show names and limits, one key a line."""
    for record in KeyFile(keys).records():
        limits = record.allowance
        made = time.strftime("%Y-%m-%d", time.gmtime(record.created))
        replies = "any number of" if limits.concurrency is None else limits.concurrency
        tokens = "any number of" if limits.tokens_per_minute is None else limits.tokens_per_minute
        output().print(
            f"{record.name}  {record.id}  made {made}  {replies} replies at once  {tokens} tokens per minute  "
            f"{limits.priority} at best",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


@keys_app.command()
def remove(name: KeyName, keys: o.KeyStore) -> None:
    """Remove a key, by name or id: requests with it are refused from now on."""
    KeyFile(keys).remove(name)
