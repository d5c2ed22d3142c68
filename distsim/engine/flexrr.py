"""The story of FlexRR: workers push to a server and also do pieces of each other's steps.

compute      a worker does its step piece by piece, from the front, until only pieces remain that others have taken.
wait         the worker waits for the sums of the pieces that others do for it.
exchange     push, wait, pull, as in the server's story. From the moment of the push the worker also helps:
    hand over    the plan names a worker; the helper takes the last piece of that worker's step. Asking takes no time.
    compute      the helper works at the speed of its own latest step. It finishes a piece that it has begun, even if
                 the answer arrives earlier. Then it goes on, unless the plan still names a worker that would make
                 it wait after its next step.
    send         the helper adds up the gradients of the pieces that it does in a row for one worker. The sum is as
                 large as a gradient. It travels to that worker while the helper goes on.

A worker's own pieces need no events: the end of each piece is known at the start of the step, and a piece handed
over only makes the worker's part end sooner. A helper without work asks for work, and asks again only when a worker
that it may help begins a step.
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

SOON = 1e-9  # share of a piece's time: a piece with less time left is done, since clocks are sums of rounded times


class FlexRRStory(ServerStory):
    """Workers that push to a server, and do pieces of other workers' steps while they wait for the answer.

    A gradient has a row of contributions for each range of items that one worker did. read_version is the version
    that this worker had read, so a replay can redo each range. In exact ties, for example with constant compute
    times, the helpers are chosen in the order in which workers begin.
    """

    def __init__(self, scenario: Scenario, rules: list[Rule], apply_seconds: float) -> None:
        super().__init__(scenario, rules, apply_seconds)
        assert isinstance(scenario.policy, FlexRR)
        workers = scenario.cluster.workers
        self.items = scenario.policy.items
        self.plan = scenario.policy.plan(workers)
        self.pieces = Pieces()
        self.sums = Sums(scenario.gradient_bytes)
        self.began = [0.0] * workers  # by worker: the start of its step
        self.piece_seconds = [0.0] * workers  # by worker: time of one piece, until its next step
        self.timers = [self.environment.timeout(0.0)] * workers  # by worker: the end of the pieces that it kept
        self.idle: set[int] = set()  # workers without work of their own
        self.read_versions = [0] * workers  # by worker: the version on which it does pieces
        self.rows: list[Piece | None] = [None] * workers  # by helper: the first piece of its row for one worker
        self.free: list[simpy.Event | None] = [None] * workers  # by worker that has new parameters, while it helps on
        self.beginners: list[int] = []  # workers that began a step at this instant while another could help
        self.sums_to_come = [0] * workers  # by worker: the helpers that do its pieces or send their sum
        self.sums_are_here: list[simpy.Event | None] = [None] * workers  # by worker, while it waits for sums
        self.last_sum_began = [0.0] * workers

    def run(self) -> Trace:
        """Simulates the run until the last update has been answered."""
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
        """Does the pieces of a step that the worker keeps, and waits for the pieces of others."""
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
        """Push, wait, pull. The worker helps meanwhile, and before it goes on, those that would make it wait."""
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
        self.read_versions[worker] = self.servers[0].read_versions[worker]

    def begin(self, worker: int, step: int) -> None:
        """A worker begins its step, and the workers that may help learn of the step."""
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
        """Idle workers may help the workers that began at this instant."""
        for worker in self.beginners:
            for helper in self.plan.helpers(worker):
                if helper in self.idle and not self.rows[helper]:
                    self.help(helper)
        self.beginners.clear()

    def help(self, helper: int) -> None:
        """A worker without work of its own begins a piece of another worker's step, if there is a piece to do."""
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
            start, read_version = self.environment.now, self.read_versions[helper]
            end = self.environment.timeout(self.piece_seconds[helper])
            end.callbacks.append(lambda _: self.helped(helper, piece, read_version, start))
            return
        self.rows[helper] = None
        if free := self.free[helper]:
            self.free[helper] = None
            free.succeed()

    def helped(self, helper: int, piece: Piece, read_version: int, start: float) -> None:
        """A worker has done a piece of another worker's step."""
        step, seconds = self.plan.steps[helper], self.piece_seconds[helper]
        self.pieces.did(piece.worker, piece.step, piece.item, 1, helper, read_version, step, start, seconds)
        self.plan.done(piece)
        self.help(helper)

    def hand_over(self, helper: int) -> Piece | None:
        """The plan's piece for a worker between its steps. The other worker's part then ends sooner."""
        answered = self.free[helper] is not None
        if not (answered or helper in self.idle) or not self.going_on:
            return None
        plan, now = self.plan, self.environment.now
        for worker in plan.helped(helper):
            if plan.left(worker):
                # The pieces that the worker would have done by now if helpers had taken none.
                seconds = self.piece_seconds[worker]
                plan.on_its_own(worker, int((now - self.began[worker]) / seconds + SOON) if seconds else self.items)
        piece = plan.hand_over(helper, answered=answered)
        if piece:
            worker, _, item = piece
            self.environment.sooner(self.timers[worker], self.began[worker] + item * self.piece_seconds[worker])
        return piece

    def send_sum(self, helper: int, piece: Piece) -> None:
        """Sends the sum of the pieces that a helper did in a row for one worker, from this piece on."""
        start, step = self.environment.now, self.plan.steps[helper]
        flow = self.hosts.send(helper, piece.worker, self.scenario.gradient_bytes)
        flow.callbacks.append(lambda _: self.sum_arrived(helper, step, piece, start))

    def sum_arrived(self, helper: int, helpers_step: int, piece: Piece, start: float) -> None:
        """A worker has received a sum from a helper."""
        worker = piece.worker
        self.sums.arrived(helper, helpers_step, worker, piece.step, start, self.environment.now)
        self.last_sum_began[worker] = start
        self.sums_to_come[worker] -= 1
        if not self.sums_to_come[worker] and (waiting := self.sums_are_here[worker]):
            self.sums_are_here[worker] = None
            waiting.succeed()
