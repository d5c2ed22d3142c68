"""The story of workers that sum by collectives: compute -> all-reduce.

Synchronous: an all-reduce of the gradients after each step. Local SGD: an all-reduce of the parameters after every
`period` local steps and at the end; in between, workers exchange nothing.
"""

from __future__ import annotations

import numpy as np

from distsim.collectives import Schedule, Transfer
from distsim.cores import Cores
from distsim.engine.averaging_server import AveragingServer
from distsim.engine.collective import CollectiveCall, Gates
from distsim.engine.simulated_hosts import ROUNDING, SimulatedHosts, Story, finished
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.policies import LocalSgd, Synchronous
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class AllReduces:
    """The all-reduces of one run, or other exchanges, by number. The first worker that joins one creates the call.

    arrivals, ends: by number, the times when each worker joined and when the worker had the sum. apply_seconds: a
    server's own work for each all-reduce. schedule: of each all-reduce, in place of the scenario's own.
    """

    def __init__(
        self, hosts: SimulatedHosts, scenario: Scenario, builder: TraceBuilder, apply_seconds: float = 0.0,
        schedule: Schedule | None = None,
    ) -> None:  # fmt: skip
        self.hosts = hosts
        self.schedule = schedule
        server = AveragingServer(hosts, scenario, builder, apply_seconds) if scenario.servers else None
        self.send = hosts.exchange if server is None else server.send
        self.builder = builder
        self.scenario = scenario
        self.workers = scenario.cluster.workers
        self.gates: dict[GroupExchange, tuple[Schedule, Gates]] = {}
        self.calls: dict[int, CollectiveCall] = {}
        self.arrivals: dict[int, list[float]] = {}
        self.ends: dict[int, list[float]] = {}

    def join(self, number: int, worker: int, num_bytes: float, exchange: GroupExchange = ALL_REDUCE) -> Story:
        """`worker` takes part in all-reduce `number`, or in another exchange, until the worker has the result."""
        if number not in self.calls:
            self.calls[number] = self._call(number, num_bytes, exchange)
            self.arrivals[number] = [0.0] * self.workers
            self.ends[number] = [0.0] * self.workers
        self.arrivals[number][worker] = self.hosts.now
        if self.hosts.cores is not None:
            yield self.hosts.exchange_work(worker, self.hosts.cores.call_seconds)
        yield self.calls[number].join(worker)
        self.ends[number][worker] = self.hosts.now

    def _call(self, number: int, num_bytes: float, exchange: GroupExchange) -> CollectiveCall:
        if exchange not in self.gates:
            schedule = self.schedule or self.scenario.schedule(exchange)
            self.gates[exchange] = schedule, Gates.of(schedule, self.scenario.communication.sends)
        (schedule, gates), workers = self.gates[exchange], self.workers

        def carried(transfer: Transfer, carried_bytes: float, start_seconds: float, end_seconds: float) -> None:
            source, target = transfer.source, transfer.target
            self.builder.transfer(source, target, carried_bytes, start_seconds, end_seconds, transfer.chunk, number)
            if target >= workers:
                label = f"from worker {source}"
                self.builder.span(target, SpanKind.RECEIVE, number, start_seconds, end_seconds, carried_bytes, label)
            if source >= workers:
                label = f"to worker {target}"
                self.builder.span(source, SpanKind.SEND, number, start_seconds, end_seconds, carried_bytes, label)

        call = CollectiveCall(self.hosts.environment, gates, num_bytes / schedule.chunks, self.send, carried)
        for server in range(workers, schedule.ranks):
            call.join(server)
        return call

    def tell(
        self, number: int, step: int, num_bytes: float, idle_from: list[float], label: str = "",
        exchange: GroupExchange = ALL_REDUCE, workers: range | None = None,
    ) -> None:  # fmt: skip
        """Writes the spans of an all-reduce or another exchange, which belongs to the workers' step `step`.

        workers: those that joined, whole groups of them; None: all.

        No worker can finish before the last worker of its group has joined. Until then a worker waits, from
        idle_from[worker] on, when the worker's other work is done. After that the worker communicates.
        """
        joined, kind = exchange.last(np.array(self.arrivals[number])).tolist(), SpanKind[exchange.kind.upper()]
        for worker in workers or range(self.workers):
            idle, last, end = idle_from[worker], joined[worker], self.ends[number][worker]
            if last - idle > ROUNDING * last:
                self.builder.span(worker, SpanKind.WAIT, step, idle, last, label=label)
            self.builder.span(worker, kind, step, last, end, num_bytes, label)


class PeersStory:
    """Workers that sum gradients, or average parameters, among themselves or through one server.

    An update is an average. Each local step is a separate contribution: version is the average that the step went
    into, and read_version counts the averages before the step. A replay takes a worker's rows of one version in the
    order of steps. Each row moves the worker's own parameters, which started as a copy of the common parameters.
    """

    def __init__(
        self, scenario: Scenario, apply_seconds: float = 0.0, cores: Cores | None = None,
        schedule: Schedule | None = None,
    ) -> None:  # fmt: skip
        assert isinstance(scenario.policy, Synchronous | LocalSgd)
        self.scenario = scenario
        self.period = scenario.policy.steps_per_update
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts, cores)
        self.core_seconds = 0.0 if cores is None else cores.step_seconds
        self.compute_times = scenario.simulated_times() if cores is None else scenario.compute_times()
        self.builder = TraceBuilder()
        self.all_reduces = AllReduces(self.hosts, scenario, self.builder, apply_seconds, schedule)

    def run(self) -> Trace:
        """Simulates the run to its end."""
        for worker in range(self.scenario.cluster.workers):
            self.hosts.environment.process(self.worker(worker))
        self.hosts.environment.run()
        for number in self.all_reduces.calls:
            self.tell_update(number)
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps."""
        steps = self.scenario.steps
        for step in range(steps):
            # compute
            start = self.hosts.now
            yield from self.hosts.work(worker, self.compute_times(worker, step), self.core_seconds)
            self.builder.span(worker, SpanKind.COMPUTE, step, start, self.hosts.now)
            # all-reduce
            if self.scenario.policy.updates_after(step, steps):
                yield from self.all_reduces.join(step // self.period, worker, self.scenario.gradient_bytes)

    def tell_update(self, number: int) -> None:
        """Writes update `number` + 1, which all-reduce `number` makes of the steps since the all-reduce before."""
        steps = range(number * self.period, min((number + 1) * self.period, self.scenario.steps))
        self.all_reduces.tell(
            number, steps[-1], self.scenario.gradient_bytes, idle_from=self.all_reduces.arrivals[number]
        )
        for worker in range(self.scenario.cluster.workers):
            for step in steps:
                self.builder.applied(number + 1, worker, step, read_version=number)
        self.builder.update(number + 1, max(self.all_reduces.ends[number]))
