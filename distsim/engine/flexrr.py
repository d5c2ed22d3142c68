"""The story of FlexRR: that of the server, in which workers do pieces of each other's steps.

compute      a worker does its step piece by piece, from the front, until it comes to what others have taken.
wait         for what others do for it.
exchange     push, wait, pull as ever. Meanwhile, from the moment it pushes, the worker helps:
    hand over    the plan says whose piece it does, from the back of that worker's step; asking takes no time.
    compute      at the helper's own speed: that of its latest step. A piece that has begun is done to its end,
                 also where the answer comes before.
    send         the sum of the gradients of all pieces done in a row for one worker travels to that worker,
                 as large as a gradient, while the helper goes on.

A worker's own pieces have no events: from the start of the step the end of each piece is known, and a piece handed
over only makes the worker's part end sooner. A helper asks for work when it has none, and again only when a worker that
it may help begins a step.
"""

from __future__ import annotations

from dataclasses import replace

import simpy

from distsim.engine.exchange import Push
from distsim.engine.helped_pieces import Pieces, Sums, by_ranges
from distsim.engine.server import ServerStory
from distsim.engine.simulated_hosts import Story
from distsim.network import after_all
from distsim.policies import FlexRR, Rule
from distsim.policies.flexrr_plan import Piece
from distsim.scenario import Scenario
from distsim.trace import Trace

SOON = 1e-9  # of a piece's time: a piece that ends sooner is done, since clocks are sums of rounded times


class FlexRRStory(ServerStory):
    """Workers that push to a server, and do pieces of others' steps while they wait for its answer.

    A gradient is a row of contributions for each range of items that one worker did; read_version is what that
    worker had read, so that a replay can redo each range. In exact ties, as with constant
    compute times, the order in which workers begin decides who helps whom.
    """

    def __init__(self, scenario: Scenario, rules: list[Rule], apply_seconds: float) -> None:
        super().__init__(scenario, rules, apply_seconds)
        assert isinstance(scenario.policy, FlexRR)
        workers = scenario.cluster.workers
        self.items = scenario.policy.items
        self.plan = scenario.policy.plan(workers)
        self.pieces = Pieces()
        self.sums = Sums(scenario.gradient_bytes)
        self.began = [0.0] * workers  # by worker: when it began its step
        self.piece_seconds = [0.0] * workers  # by worker: each piece of its step, and of others' until its next
        self.timers = [self.environment.timeout(0.0)] * workers  # by worker: when it has done the pieces it kept
        self.idle: set[int] = set()  # workers without work of their own
        self.rows: list[Piece | None] = [None] * workers  # by helper: the first piece it does in a row for one worker
        self.free: list[simpy.Event | None] = [None] * workers  # by worker: while it waits to end a piece for another
        self.beginners: list[int] = []  # workers that began a step at this instant while another could help
        self.sums_to_come = [0] * workers  # by worker: how many helpers do pieces of its step, or send their sum
        self.sums_are_here: list[simpy.Event | None] = [None] * workers  # by worker: while it waits for them
        self.last_sum_began = [0.0] * workers

    def run(self) -> Trace:
        """Tells the story until the last update has been answered."""
        trace = super().run()
        return replace(trace, contributions=by_ranges(trace.contributions, self.pieces.ranges()))

    def tell(self) -> None:
        """Writes the rows of the trace."""
        self.pieces.tell(self.builder)
        self.sums.tell(self.builder, self.scenario.cluster.workers)
        super().tell()

    def worker(self, worker: int) -> Story:
        """One worker's steps; after its last step a worker helps until the run is over."""
        yield from super().worker(worker)
        self.idle.add(worker)
        self.help(worker)

    def compute(self, push: Push) -> Story:
        """A step's pieces: those that the worker keeps, and the wait for the others."""
        worker, step = push.worker, push.step
        # compute
        self.begin(worker, step)
        yield self.timers[worker]
        items = self.plan.on_its_own(worker, self.items)
        seconds = self.piece_seconds[worker]
        self.pieces.did(worker, step, 0, items, worker, push.read_version, step, self.began[worker], seconds)
        # wait
        if self.sums_to_come[worker]:
            start = self.environment.now
            self.sums_are_here[worker] = here = self.environment.event()
            yield here
            if self.last_sum_began[worker] > start:
                self.sums.awaited(worker, step, start, self.last_sum_began[worker])

    def exchange(self, pushes: list[Push]) -> Story:
        """Push, wait, pull; meanwhile the worker helps, and before it goes on it ends the piece it has begun."""
        # exchange
        worker = pushes[0].worker
        self.plan.ask(worker)
        self.idle.add(worker)
        self.help(worker)
        yield from super().exchange(pushes)
        self.idle.remove(worker)
        if self.rows[worker]:
            self.free[worker] = free = self.environment.event()
            yield free

    def begin(self, worker: int, step: int) -> None:
        """A worker begins its step, and the workers that may help it learn of it."""
        self.plan.begin(worker, step)
        self.plan.on_its_own(worker, done=0)
        seconds = self.compute_times(worker, step)
        self.began[worker] = self.environment.now
        self.piece_seconds[worker] = seconds / self.items
        self.timers[worker] = self.environment.timeout(seconds)
        if not self.idle.isdisjoint(self.plan.helpers(worker)):
            # An idle worker may still get its answer at this instant.
            if not self.beginners:
                after_all(self.environment, self.offer_to_helpers)
            self.beginners.append(worker)

    def offer_to_helpers(self, _: simpy.Event) -> None:
        """Workers that began at this instant may need help."""
        for worker in self.beginners:
            for helper in self.plan.helpers(worker):
                if helper in self.idle and not self.rows[helper]:
                    self.help(helper)
        self.beginners.clear()

    def help(self, helper: int) -> None:
        """A worker with nothing of its own to do begins a piece of another's step, where somebody needs it."""
        # hand over
        piece = self.hand_over(helper)
        # send
        first = self.rows[helper]
        if first and (piece is None or piece[:2] != first[:2]):
            self.send_sum(helper, first)
            first = None
        # compute
        if piece:
            if first is None:
                self.sums_to_come[piece.worker] += 1
            self.rows[helper] = first or piece
            start, read_version = self.environment.now, self.servers[0].read_versions[helper]
            end = self.environment.timeout(self.piece_seconds[helper])
            end.callbacks.append(lambda _: self.helped(helper, piece, read_version, start))
            return
        self.rows[helper] = None
        if free := self.free[helper]:
            self.free[helper] = None
            free.succeed()

    def helped(self, helper: int, piece: Piece, read_version: int, start: float) -> None:
        """A worker has done a piece of another's step."""
        step, seconds = self.plan.steps[helper], self.piece_seconds[helper]
        self.pieces.did(piece.worker, piece.step, piece.item, 1, helper, read_version, step, start, seconds)
        self.plan.done(piece)
        self.help(helper)

    def hand_over(self, helper: int) -> Piece | None:
        """The plan's piece for a worker that has nothing of its own to do; another's part ends sooner by it."""
        if helper not in self.idle or not self.going_on:
            return None
        plan, now = self.plan, self.environment.now
        for worker in plan.helped(helper):
            if plan.left(worker):
                # How many it would have done by now if others had taken none.
                seconds = self.piece_seconds[worker]
                plan.on_its_own(worker, int((now - self.began[worker]) / seconds + SOON) if seconds else self.items)
        piece = plan.hand_over(helper)
        if piece:
            worker, _, item = piece
            self.environment.sooner(self.timers[worker], self.began[worker] + item * self.piece_seconds[worker])
        return piece

    def send_sum(self, helper: int, piece: Piece) -> None:
        """The sum of what a helper did in a row for one worker, from this piece on, travels there."""
        start, step = self.environment.now, self.plan.steps[helper]
        flow = self.hosts.send(helper, piece.worker, self.scenario.gradient_bytes)
        flow.callbacks.append(lambda _: self.sum_arrived(helper, step, piece, start))

    def sum_arrived(self, helper: int, helpers_step: int, piece: Piece, start: float) -> None:
        """A worker has what another did for it."""
        worker = piece.worker
        self.sums.arrived(helper, helpers_step, worker, piece.step, start, self.environment.now)
        self.last_sum_began[worker] = start
        self.sums_to_come[worker] -= 1
        if not self.sums_to_come[worker] and (waiting := self.sums_are_here[worker]):
            self.sums_are_here[worker] = None
            waiting.succeed()
