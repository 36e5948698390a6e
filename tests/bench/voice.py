"""What a voice assistant waits for, over realtime sockets: `python voice.py --help`.

Each part measures one thing against another in the same run, turn by turn; a step is one token of a plain reply to
the same conversation. The server is a process of its own, and so are its figures of memory and of the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping

from harness import Running, as_command, record, serving, some_of
from voice_crowds import classes_part, idle_part, memory_part, responses_part, talk_part
from voice_figures import Row
from voice_turns import cancel_part, commit_part, cut_part, turn_part

from paceline.engine.model.sources import DEFAULT_MODEL

Part = Callable[[Running, argparse.Namespace], Awaitable[list[Row]]]

PARTS: Mapping[str, Part] = {
    "commit": commit_part,
    "cancel": cancel_part,
    "turn": turn_part,
    "cut": cut_part,
    "talk": talk_part,
    "responses": responses_part,
    "idle": idle_part,
    "classes": classes_part,
    "memory": memory_part,
}


def main(arguments: argparse.Namespace) -> None:
    with serving(arguments.model) as server:
        for part in arguments.only:
            record("voice", asyncio.run(PARTS[part](server, arguments)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--only", type=some_of(PARTS), default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spoken-ms", type=float, default=100, help="between two pieces of five words")
    parser.add_argument("--pause-s", type=float, default=1.0, help="between an answer and the next question")
    parser.add_argument("--speaking", type=int, default=8, help="sessions that speak at once")
    parser.add_argument("--idle", type=int, default=200, help="sessions that only hold a conversation")
    parser.add_argument("--sockets", type=int, default=1000, help="open while memory is watched")
    parser.add_argument("--deaf", type=int, default=50, help="of these, the ones that ask and never read")
    parser.add_argument("--minutes", type=float, default=5, help="of load while memory is watched")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
