"""One step of everything: schedule, draft, run, walk, commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from paceline.spec.cost import Work
from paceline.spec.drafters import Drafters
from paceline.spec.guard import Guard
from paceline.spec.latency import Step
from paceline.spec.merge import Guesses
from paceline.spec.planner import Draft, Planner
from paceline.spec.tree import TokenTree

from .acceptor import Acceptor, Outcome
from .ask import ask_of
from .deltas import deltas, warm_delta
from .errors import RequestError
from .page_table import Move, PageTable
from .request import Delta, Request
from .runner import Runner, StepOutput
from .scheduler import Plan, Row, Scheduler
from .tallies import GuessTally
from .telemetry import EngineStats, Telemetry

Post = Callable[[list[Delta]], None]


class Engine:
    """Turns requests into deltas, one step at a time. Not thread safe: `EngineLoop` gives it a thread.

    overlap: what a step brought is told while the next one is computed: on a device that needs no host meanwhile.
    context_length: most tokens of prompt and reply together. vocab_size: token ids lie below it.
    """

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        pages: PageTable,
        runner: Runner,
        acceptor: Acceptor,
        drafters: Drafters,
        planner: Planner,
        guard: Guard,
        overlap: bool,
        context_length: int,
        vocab_size: int,
    ) -> None:
        self.context_length = context_length
        self.vocab_size = vocab_size
        self.telemetry = Telemetry(by_drafter={name: GuessTally() for name in drafters.names})
        self.scheduler = scheduler
        self.pages = pages
        self._runner = runner
        self._acceptor = acceptor
        self._drafters = drafters
        self._planner = planner
        self._guard = guard
        self._overlap = overlap
        self._news: list[Delta] = []  # what the last step brought and nobody was told yet
        self._unended: dict[str, None] = {}  # requests that were neither aborted nor told their end, in order

    @property
    def speculators(self) -> tuple[str, ...]:
        """Modes a request may ask for."""
        return self._drafters.modes

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work

    def validate(self, request: Request, queued: int = 0) -> None:
        """Raises RequestError for what only the engine can know (context, vocabulary, drafters), OverloadedError when
        the queue is full; `queued` requests wait elsewhere to be submitted. Safe to call from another thread.
        """
        if request.speculation.mode not in self._drafters.modes:
            raise RequestError(
                f"There is no speculator {request.speculation.mode!r} here; "
                f"choose one of {', '.join(self._drafters.modes)}.",
                param="speculation.mode",
            )
        self._validate_ids("messages", request.prompt)
        self._validate_ids("logit_bias", request.sampling.logit_bias)
        self._validate_ids("prediction", request.speculation.prediction)
        self.scheduler.validate(request, queued)  # last: a busy server still tells a bad request what is wrong with it

    def _validate_ids(self, param: str, ids: Iterable[int]) -> None:
        wrong = next((token for token in ids if not 0 <= token < self.vocab_size), None)
        if wrong is not None:
            raise RequestError(
                f"Token id {wrong} does not exist; this model's ids lie between 0 and {self.vocab_size - 1}.",
                param=param,
            )

    def submit(self, request: Request) -> None:
        """Raises RequestError or OverloadedError; then the request leaves no trace."""
        self.validate(request)
        self.enqueue(request)

    def enqueue(self, request: Request) -> None:
        """Put a request that `validate` has accepted in the queue."""
        self._unended[request.id] = None
        self.scheduler.submit(request)

    def abort(self, request_id: str) -> None:
        """The sequence is gone and its blocks are free when this returns; unknown ids are ignored."""
        self._unended.pop(request_id, None)
        if seq := self.scheduler.find(request_id):
            self.scheduler.retire(seq)
            self._forget(seq.id)

    def _forget(self, seq_id: str) -> None:
        self._drafters.forget(seq_id)
        self._planner.forget(seq_id)

    def fail(self, message: str, post: Post) -> None:
        """A step broke: every sequence ends with an error, since what they share may be broken; the engine goes on.

        So do those the step had retired and told nothing: whoever waits for an end gets one, whatever else breaks.
        """
        failed = list(self.scheduler)
        try:
            self.pages.forget_prefixes()
            for seq in failed:
                self.scheduler.retire(seq)
        finally:
            told = {delta.request_id for delta in self._news if delta.finish is not None}
            lost = [request_id for request_id in self._unended if request_id not in told]
            self._news += [Delta(request_id=each, tokens=(), finish="error", error=message) for each in lost]
            self._tell(post)
        for seq in failed:
            self._forget(seq.id)

    def cut(self, request_id: str, kept: int) -> None:
        """End a running reply after its first `kept` tokens: what follows is dropped from the cache as well.

        One that has ended by itself meanwhile keeps its blocks: they are valid, only nobody will ask for them.
        """
        if seq := self.scheduler.find(request_id):
            self.pages.truncate(seq, len(seq.request.prompt) + kept)
            self.abort(request_id)

    def pin(self, owner: str, tokens: Sequence[int]) -> None:
        """Keep what the prefix cache has of `tokens` for the owner, in place of its former pin, until `unpin` or until
        sequences need the room: the oldest pins go first, after all that nobody pinned."""
        self.pages.pin(owner, tokens)

    def unpin(self, owner: str) -> None:
        """Nothing is kept for the owner any more; unknown ones are ignored."""
        self.pages.unpin(owner)

    def step(self, post: Post) -> None:
        """Compute one step and hand its deltas to `post`. No effect when there is nothing to do."""
        start = time.perf_counter()
        plan = self.scheduler.schedule()
        self._end_warm(plan)
        if not plan.rows:
            self._tell(post)
            return
        guessing = [i for i, row in enumerate(plan.rows) if row.guesses > 0]
        only_decodes = all(row.seq.is_decoding for row in plan.rows)  # said now: a prompt that ends here decodes next
        drafting = self._guard.drafts(len(guessing), only_decodes)
        drafts = self._draft(plan, guessing if drafting else [])
        trees = [draft.tree for draft in drafts]
        before = time.perf_counter()
        out = self._runner.forward(plan, trees)
        choices = self._runner.settle(out, self._acceptor.draws(plan, trees))
        self._tell(post)  # readers have the last step's text while the device works on this one
        settled = choices.result()
        forward_ms = (time.perf_counter() - before) * 1e3
        outcomes = self._acceptor.walk(plan, trees, out, settled.tokens)
        moves = self._commit(plan, outcomes)
        if not settled.moved:
            self._runner.move(moves)
        ended = [row.seq for row, outcome in zip(plan.rows, outcomes, strict=True) if outcome.finish is not None]
        for seq in ended:
            self.scheduler.retire(seq)
        step_ms = (time.perf_counter() - start) * 1e3
        try:
            self._news = deltas(plan, drafts, outcomes, step_ms, self._planner.chances)
            if not (self._overlap and self.has_work):
                self._tell(post)  # the reader has its text; drafts come next step
            self._observe(plan, drafts, outcomes, out, forward_ms)
        finally:
            for seq in ended:  # whatever broke, nobody else will say that they are gone
                self._forget(seq.id)
        step_ms = (time.perf_counter() - start) * 1e3
        if guessing and only_decodes:
            self._guard.observe(len(guessing), drafting, sum(len(each.tokens) for each in outcomes), step_ms)
        self.telemetry.step_ms += step_ms
        self.telemetry.forward_ms += forward_ms

    def _end_warm(self, plan: Plan) -> None:
        """What some would have computed is in the cache already: they end without a row."""
        for seq in plan.warm:
            self.scheduler.retire(seq)
            self._forget(seq.id)
            self.telemetry.count_prompt(seq)
            self._news.append(warm_delta(seq))

    def _draft(self, plan: Plan, guessing: list[int]) -> list[Draft]:
        """A chain of known tokens for every row; for those of `guessing` a tree of guesses below the last of them."""
        trees: dict[int, Draft] = {}
        if guessing:
            asks = [ask_of(plan.rows[i]) for i in guessing]
            modes = [plan.rows[i].seq.request.speculation.mode for i in guessing]
            step = Step(plan.work, plan.streams)

            def pays(drafter: str, cost_ms: float, asking: Sequence[int], guesses: Sequence[Guesses]) -> bool:
                return self._planner.pays(drafter, cost_ms, asking, asks, guesses, step)

            guesses = self._drafters.propose(asks, modes, pays)
            trees = dict(zip(guessing, self._planner.drafts(asks, guesses, step), strict=True))
        return [trees.get(i) or self._known_chain(row) for i, row in enumerate(plan.rows)]

    def _known_chain(self, row: Row) -> Draft:
        """A tree of the known tokens the row computes and nothing else: a prefill chunk, or a plain step."""
        seq = row.seq
        tree = TokenTree.chain(tuple(seq.tokens[seq.num_computed : seq.num_computed + row.known]))
        if not seq.is_decoding:
            return Draft(tree, "prefill")
        if row.guesses:
            return Draft(tree, "not worth it")  # says the guard
        return Draft(tree, "no room" if self.scheduler.guess_limit(seq.request) else "off")

    def _tell(self, post: Post) -> None:
        news, self._news = self._news, []
        if news:
            post(news)
        for delta in news:
            if delta.finish is not None:
                self._unended.pop(delta.request_id, None)

    def _commit(self, plan: Plan, outcomes: list[Outcome]) -> list[Move]:
        """Accepted tokens become part of their sequences; returns the slots to copy."""
        moves: list[Move] = []
        for row, outcome in zip(plan.rows, outcomes, strict=True):
            row.seq.tokens += outcome.tokens
            moves += self.pages.commit(row.seq, outcome.path)
        return moves

    def _observe(
        self, plan: Plan, drafts: list[Draft], outcomes: list[Outcome], out: StepOutput, forward_ms: float
    ) -> None:
        telemetry = self.telemetry
        work = Work(0)
        for row, draft, outcome in zip(plan.rows, drafts, outcomes, strict=True):
            work = work.beside(row.start, len(draft.tree))
            self._planner.observe(draft, outcome.tokens)
            made, path = draft.guesses, outcome.path
            picks = enumerate(draft.picks, start=1)
            telemetry.count_guesses([(made.depths[pick], made.votes[pick], node in path) for node, pick in picks])
            if outcome.tokens:
                telemetry.count_reason(draft.reason)
                telemetry.generated_tokens += len(outcome.tokens)
            if outcome.finish == "prefilled" or 0 < len(outcome.tokens) == row.seq.output_count:
                telemetry.count_prompt(row.seq)
        if any(draft.reason != "prefill" for draft in drafts):  # what a lone prompt takes decides nothing
            self._planner.observe_step(work, forward_ms)
        requests = [row.seq.request for row in plan.rows]
        reads = [not each.prefill_only and self._drafters.needs_hidden(each.speculation.mode) for each in requests]
        self._drafters.observe(self._acceptor.verdicts(plan, outcomes, out, reads))
        telemetry.count_step(len(plan.rows), work.rows)

    def stats(self) -> EngineStats:
        """A snapshot; safe to take from another thread, each figure for itself."""
        return self.telemetry.snapshot(self.scheduler)

    def check(self) -> None:
        """Raise AssertionError when the cache's books do not balance."""
        self.pages.check(self.scheduler)
