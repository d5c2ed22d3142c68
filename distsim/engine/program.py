"""The story of workers that play a step's program: a queue of computing, and beside it queues of exchanges.

apply        an update of the worker's own part of the parameters, where a profile tells its time.
forward, backward    of one unit of layers, as soon as the exchanges that it needs are over.
exchange     a collective of all workers, or of each group of them, as soon as the exchange before it in
             its queue, and the computing that it needs, are over.
A step ends for a worker when all its queues are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import simpy

from distsim.cores import Cores
from distsim.engine.peers import AllReduces
from distsim.engine.simulated_hosts import SimulatedHosts, Story, finished
from distsim.policies import Computation, Programmed
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class ProgramStory:
    """Workers that all have the same program in each step; a step makes one update, when its last exchange is over.

    computed: by step and computation, the time when each worker had done it.
    """

    def __init__(self, scenario: Scenario, cores: Cores | None = None) -> None:
        assert isinstance(scenario.policy, Programmed)
        self.scenario = scenario
        self.workers = scenario.cluster.workers
        self.program = scenario.policy.program(scenario.workload, self.workers)
        profiled = scenario.workload.profile is not None
        whole = 0.0 if cores is None or profiled else cores.step_seconds  # of a batch, divided as the drawn time is
        self.core_seconds = whole * scenario.policy.batches(self.workers) / self.workers
        self.cores = cores
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts, cores)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.exchanges = AllReduces(self.hosts, scenario, self.builder)
        self.computed: dict[tuple[int, int], list[float]] = {}

    def run(self) -> Trace:
        """Simulates the run to its end."""
        for worker in range(self.workers):
            self.hosts.environment.process(self.worker(worker))
        self.hosts.environment.run()
        for step in range(self.scenario.steps):
            self.tell_step(step)
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps."""
        event = self.hosts.environment.event
        for step in range(self.scenario.steps):
            computed = [event() for _ in self.program.computations]
            exchanged = [event() for _ in self.program.exchanges]
            exchanging = [
                self.hosts.environment.process(self.exchange(worker, step, queue, computed, exchanged))
                for queue in self.program.queues
            ]
            seconds = self.compute_times(worker, step)
            for number, piece in enumerate(self.program.computations):
                yield from self.wait(piece, exchanged)
                start = self.hosts.now
                added = piece.added_seconds + piece.share * self.core_seconds
                yield from self.hosts.work(worker, piece.share * seconds, added)
                self.computed.setdefault((step, number), [0.0] * self.workers)[worker] = self.hosts.now
                if self.hosts.now > start or piece.kind != "apply":
                    kind, label = SpanKind[piece.kind.upper()], self.program.label(piece)
                    self.builder.span(worker, kind, step, start, self.hosts.now, label=label)
                computed[number].succeed()
            yield self.hosts.environment.all_of(exchanging)

    def wait(self, piece: Computation, exchanged: Sequence[simpy.Event]) -> Story:
        """Waits for the exchanges that a computation needs. After a wait for a gather the worker has to wake up.

        The wake-up after a sum is part of the call of each exchange, which is measured on a worker that sums.
        """
        waited = False
        for number in piece.after:
            waited |= self.program.exchanges[number].kind == "all_gather" and not exchanged[number].triggered
            yield exchanged[number]
        if waited and self.cores is not None:
            yield from self.hosts.wake()

    def exchange(
        self, worker: int, step: int, queue: Sequence[int], computed: Sequence[simpy.Event],
        exchanged: Sequence[simpy.Event],
    ) -> Story:  # fmt: skip
        """One worker's exchanges of a step in one queue, one after the other."""
        for number in queue:
            piece = self.program.exchanges[number]
            if piece.after:
                yield computed[piece.after - 1]
            if self.cores is not None:
                yield self.hosts.exchange_work(worker, self.cores.bucket_byte_seconds * piece.num_bytes)
            yield from self.exchanges.join(self.call(step, number), worker, piece.num_bytes, piece.called)
            exchanged[number].succeed()

    def call(self, step: int, number: int) -> int:
        """The number, in the whole run, of exchange `number` of a step."""
        return step * len(self.program.exchanges) + number

    def tell_step(self, step: int) -> None:
        """Writes the spans of the step's exchanges, the contributions and the update."""
        last = 0.0
        for number, piece in enumerate(self.program.exchanges):
            call, before = self.call(step, number), self.program.computed_before_waiting[number]
            arrivals = self.exchanges.arrivals[call]
            # A worker does not wait while it has something to compute.
            free = self.computed[step, before - 1] if before else arrivals
            idle_from = [max(times) for times in zip(arrivals, free, strict=True)]
            label = self.program.label(piece)
            self.exchanges.tell(call, step, piece.num_bytes, idle_from, label, piece.called)
            last = max(last, *self.exchanges.ends[call])
        for worker in range(self.workers):
            self.builder.applied(step + 1, worker, step, read_version=step)
        self.builder.update(step + 1, last)
