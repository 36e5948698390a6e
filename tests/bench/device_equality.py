"""Replies of an engine that speculates against those of plain decoding, token by token: no difference is forgiven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle

from device_models import prompts
from device_tools import NONE, SOME, Figure
from fakes import FLAT, AlwaysDrafting, Replies, Scripted, make_request, run

from paceline.engine.backends import choose_ops
from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.model.checkpoint import Checkpoint
from paceline.engine.model.decoder import cache_shape
from paceline.engine.page_table import blocks_for
from paceline.engine.request import Request
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import StepCost
from paceline.spec.proposer import Proposer
from paceline.spec.suffix import Suffix
from paceline.spec.tree import MAX_NODES

SAMPLINGS: tuple[dict[str, object], ...] = ({"temperature": 0.0}, {"temperature": 0.8, "top_p": 0.95})


@dataclass(frozen=True)
class Workload:
    """longest: prompt, where a model has no vocabulary to ask with. together: sequences of one batch. fitting: how many
    of the longest fit in a cache that is too small for them.
    """

    prompts: int
    longest: int
    tokens: int
    together: int
    fitting: int
    nodes: int = MAX_NODES


class Equality:
    """One model, its requests and their plain replies."""

    def __init__(self, checkpoint: Checkpoint, config: EngineConfig, workload: Workload) -> None:
        self._checkpoint = checkpoint
        self._workload = workload
        asked = prompts(checkpoint.text, checkpoint.config.vocab_size, workload.prompts, workload.longest)
        self.requests = [
            make_request(f"r{number}", prompt, max_tokens=workload.tokens, seed=77 * number, **sampling)
            for number, (prompt, sampling) in enumerate(zip(asked, cycle(SAMPLINGS)))
        ]
        self._blocks = blocks_for(max(map(len, asked)) + workload.tokens + 1)
        self._config = replace(
            config, max_batch=workload.together, max_nodes=workload.nodes, context_length=self._blocks * BLOCK_SIZE
        )
        self._plainly = self._engine()
        self.plain = run(self._plainly, self.requests, together=False)
        self._plainly.pages.forget_prefixes()

    def _engine(self, drafter: Proposer | None = None, blocks: int | None = None) -> Engine:
        config = self._config
        if blocks is not None:
            ops = choose_ops(config, self._checkpoint, config.device, None)
            memory = blocks * ops.block_bytes(cache_shape(self._checkpoint.config))
            config = replace(config, kv_memory=memory)
        drafters = [] if drafter is None else [drafter]
        return build_engine(self._checkpoint, config, proposers=drafters, cost=StepCost(FLAT), guard=AlwaysDrafting())

    def _random(self) -> Scripted:
        truth = {request.prompt: self.plain.tokens(request.id) for request in self.requests}
        return Scripted("random", truth, self._checkpoint.config.vocab_size)

    def figures(self) -> Iterator[Figure]:
        """Of each way to run them, the replies that differ; first how much there is to compare."""
        total = sum(len(self.plain.tokens(request.id)) for request in self.requests)
        yield Figure("tokens compared in each way", total, "tokens")
        together = f"{self._workload.together} at a time"
        yield self._compared(f"no guesses, {together}", self._batches(self._plainly))
        for name, drafter in (("random trees", self._random()), ("suffix drafter", Suffix())):
            engine = self._engine(drafter)
            replies = run(engine, self.requests, together=False)
            yield self._compared(f"{name}, one at a time", replies)
            # Random trees hold some true tokens; what a suffix tree finds is up to the replies.
            bar = SOME if name == "random trees" else None
            yield Figure(f"{name}: guesses that were right", _accepted(replies), "tokens", bar)
            engine.pages.forget_prefixes()
            yield self._compared(f"{name}, {together}", self._batches(engine))
        engine = self._engine(self._random(), blocks=self._workload.fitting * self._blocks)
        yield self._compared("random trees, preempted", self._batches(engine))
        yield Figure("preemptions among these", engine.stats().preemptions, "sequences", SOME)

    def near_ties(self) -> Iterator[Figure]:
        """Without exact mode products of many rows are the library's, and so are those of many trees."""
        workload = replace(self._workload, prompts=max(self._workload.prompts // 3, 1))
        loose = Equality(self._checkpoint, replace(self._config, exact=False), workload)
        engine = loose._engine(loose._random())
        differ = loose._compared("", loose._batches(engine)).value
        name = f"not exact, random trees, {workload.together} at a time: replies that differ"
        yield Figure(name, differ, f"of {workload.prompts}")

    def _batches(self, engine: Engine) -> Replies:
        replies = Replies()
        size = self._workload.together
        for first in range(0, len(self.requests), size):
            replies.deltas.update(run(engine, self.requests[first : first + size]).deltas)
        return replies

    def _compared(self, name: str, replies: Replies) -> Figure:
        different = sum(_differs(request, self.plain, replies) for request in self.requests)
        return Figure(f"{name}: replies that differ", different, f"of {len(self.requests)}", NONE)


def _differs(request: Request, plain: Replies, other: Replies) -> bool:
    return (plain.tokens(request.id), plain.finish(request.id)) != (other.tokens(request.id), other.finish(request.id))


def _accepted(replies: Replies) -> int:
    return sum(delta.accepted for reply in replies.deltas.values() for delta in reply)
