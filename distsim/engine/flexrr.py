"""The story of FlexRR: that of the server, in which workers do pieces of each other's steps.

compute      a worker does its step piece by piece, from the front.
wait         for what others do for it.
exchange     push, wait, pull as ever. Meanwhile, from the moment it pushes, the worker helps:
    hand over    the plan says whose piece it does, from the back of that worker's step; asking takes no time.
    compute      at the helper's own speed: that of its latest step. A piece that has begun is done to its end,
                 also where the answer comes before.
    send         the sum of the gradients of all pieces done in a row for one worker travels to that worker,
                 as large as a gradient, while the helper goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from distsim.engine.exchange import Push
from distsim.engine.server import ServerStory
from distsim.engine.stage import Story
from distsim.policies import FlexRR, Rule
from distsim.policies.flexrr import Piece
from distsim.scenario import Scenario
from distsim.trace import FOR_ANOTHER, Contributions, SpanKind, Trace


class FlexRRStory(ServerStory):
    """Workers that push to a server, and do pieces of others' steps while they wait for its answer.

    A gradient is a row of contributions for each range of items that one worker did; read_version is what that
    worker had read, so that a replay can redo each range.
    """

    def __init__(self, scenario: Scenario, rules: list[Rule], apply_seconds: float) -> None:
        super().__init__(scenario, rules, apply_seconds)
        assert isinstance(scenario.policy, FlexRR)
        workers = scenario.cluster.workers
        self.items = scenario.policy.items
        self.plan = scenario.policy.plan(workers)
        self.idle = [False] * workers  # who has nothing of its own to do
        self.bells = [self.stage.environment.event() for _ in range(workers)]
        self.sums_to_come = [0] * workers  # by worker: how many helpers do pieces of its step, or send their sum
        self.last_sum_began = [0.0] * workers
        self.done_by: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}  # by (worker, step), item: who, read what

    def run(self) -> Trace:
        """Tells the story until the last update has been answered."""
        trace = super().run()
        return replace(trace, contributions=by_ranges(trace.contributions, self.items, self.done_by))

    def worker(self, worker: int) -> Story:
        """One worker's steps; who is through with all of them helps until the run is over."""
        yield from super().worker(worker)
        self.idle[worker] = True
        yield from self.help(worker)

    def compute(self, push: Push) -> Story:
        """A step's pieces: those that nobody takes from this worker, and the wait for the others."""
        worker = push.worker
        self.plan.begin(worker, push.step)
        for helper in self.plan.helpers(worker):
            self.ring(helper)
        # compute
        while piece := self.plan.own(worker):
            yield from self.do(piece, worker, f"item {piece.item}")
        # wait
        start = self.stage.now
        while self.sums_to_come[worker]:
            yield self.bells[worker]
        if self.stage.now > start and self.last_sum_began[worker] > start:
            self.builder.span(worker, SpanKind.WAIT, push.step, start, self.last_sum_began[worker])

    def exchange(self, pushes: list[Push]) -> Story:
        """Push, wait, pull; meanwhile the worker helps, and before it goes on it ends the piece it has begun."""
        # exchange
        worker = pushes[0].worker
        self.plan.ask(worker)
        self.idle[worker] = True
        helping = self.stage.environment.process(self.help(worker))
        yield from super().exchange(pushes)
        self.idle[worker] = False
        self.ring(worker)
        yield helping

    def help(self, helper: int) -> Story:
        """Pieces of others, as long as the worker has nothing of its own to do."""
        first: Piece | None = None  # of those done in a row for one worker
        while True:
            # hand over
            piece = self.plan.hand_over(helper) if self.idle[helper] and self.going_on else None
            # send
            if first and (piece is None or (piece.worker, piece.step) != (first.worker, first.step)):
                self.stage.environment.process(self.send_sum(helper, first))
                first = None
            # compute
            if piece:
                if first is None:
                    first = piece
                    self.sums_to_come[piece.worker] += 1
                label = f"{FOR_ANOTHER} {piece.worker}: item {piece.item} of step {piece.step}"
                yield from self.do(piece, helper, label)
            elif self.idle[helper] and self.going_on:
                yield self.bells[helper]
            else:
                return

    def do(self, piece: Piece, worker: int, label: str) -> Story:
        """`worker` does a piece, its own or another's, in an equal share of the time of its own latest step."""
        start, step = self.stage.now, self.plan.steps[worker]
        who = worker, self.servers[0].read_versions[worker]
        self.done_by.setdefault((piece.worker, piece.step), {})[piece.item] = who
        yield self.stage.environment.timeout(self.compute_times(worker, step) / self.items)
        self.builder.span(worker, SpanKind.COMPUTE, step, start, self.stage.now, label=label)
        self.plan.done(piece)

    def send_sum(self, helper: int, piece: Piece) -> Story:
        """The sum of what a helper did for one worker travels there."""
        start, step, num_bytes = self.stage.now, self.plan.steps[helper], self.scenario.gradient_bytes
        yield self.stage.send(helper, piece.worker, num_bytes)
        end = self.stage.now
        self.builder.span(helper, SpanKind.SEND, step, start, end, num_bytes, f"to worker {piece.worker}")
        self.builder.span(piece.worker, SpanKind.RECEIVE, piece.step, start, end, num_bytes, f"from worker {helper}")
        self.builder.transfer(helper, piece.worker, num_bytes, start, end)
        self.last_sum_began[piece.worker] = start
        self.sums_to_come[piece.worker] -= 1
        self.ring(piece.worker)

    def ring(self, worker: int) -> None:
        """Tells a worker that waits that something has changed."""
        bell, self.bells[worker] = self.bells[worker], self.stage.environment.event()
        bell.succeed()


def by_ranges(
    contributions: Contributions, items: int, done_by: Mapping[tuple[int, int], Mapping[int, tuple[int, int]]]
) -> Contributions:
    """Each row of a whole step, cut into the ranges of items that one worker did.

    done_by: by (worker, step) and item: who did it, and which version of the parameters that worker had read.
    """
    rows: list[tuple[Any, ...]] = []
    columns = zip(*(column.tolist() for column in contributions.columns().values()), strict=True)
    for version, server, worker, step, _, _, _, applied, cancelled in columns:
        who = done_by[worker, step]
        for (_, read_version), group in groupby(range(items), key=who.__getitem__):
            own = list(group)
            rows.append((version, server, worker, step, read_version, own[0], len(own), applied, cancelled))
    return Contributions.of_rows(rows)
