"""The story of distributed data parallel training: forward -> backward, with all-reduces of buckets during backward.

forward      the first part of the drawn compute time; with a profile, also its optimizer and its forward.
backward     the rest of the compute time, in equal parts for the layers, the last layer first. A profile adds the
             time until each layer's gradient is there.
all-reduce   a bucket's all-reduce starts when all its gradients are computed and the bucket before has finished: a
             worker has one stream of communication. It overlaps with the rest of backward, not with the next forward.
With `accumulate` = k, only every k-th step communicates. The worker adds up the gradients of the steps in between.
"""

from __future__ import annotations

import simpy

from distsim.cores import Cores
from distsim.engine.peers import AllReduces
from distsim.engine.simulated_hosts import SimulatedHosts, Story, finished
from distsim.policies import Ddp
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class DdpStory:
    """Workers that send their gradients in buckets while backward goes on.

    Each communicating step makes one update. Each of the `accumulate` steps in the update is a separate contribution.
    The workers compute the steps left over at the end, but these steps make no update.
    """

    def __init__(self, scenario: Scenario, cores: Cores | None = None) -> None:
        assert isinstance(scenario.policy, Ddp)
        self.scenario = scenario
        self.policy = scenario.policy
        self.layers = scenario.workload.layers
        layer_bytes = scenario.workload.layer_bytes
        self.buckets = self.policy.buckets(layer_bytes)
        self.bucket_bytes = [
            sum(layer_bytes[layer] for layer in bucket) * self.policy.compression for bucket in self.buckets
        ]
        self.added = scenario.workload.added_times([len(bucket) for bucket in self.buckets])
        profiled = scenario.workload.profile is not None
        self.core_seconds = 0.0 if cores is None or profiled else cores.step_seconds  # divided as the drawn time is
        self.cores = cores
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts, cores)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.all_reduces = AllReduces(self.hosts, scenario, self.builder)
        self.computed: dict[int, list[float]] = {}  # by step: the time when each worker finished backward

    def run(self) -> Trace:
        """Simulates the run to its end."""
        for worker in range(self.scenario.cluster.workers):
            self.hosts.environment.process(self.worker(worker))
        self.hosts.environment.run()
        for update in range(self.policy.updates(self.scenario.steps, self.scenario.cluster.workers)):
            self.tell_update(update)
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps."""
        environment, share = self.hosts.environment, self.scenario.workload.backward_share
        for step in range(self.scenario.steps):
            seconds = self.compute_times(worker, step)
            update, accumulated = divmod(step, self.policy.accumulate)
            communicates = accumulated + 1 == self.policy.accumulate
            # forward
            start = self.hosts.now
            optimizer = 0.0 if accumulated else self.added.optimizer
            computed = optimizer + self.added.forward + (1.0 - share) * self.core_seconds
            yield from self.hosts.work(worker, (1.0 - share) * seconds, computed)
            self.builder.span(worker, SpanKind.FORWARD, step, start, self.hosts.now)
            # backward, and all-reduce
            start = self.hosts.now
            through = environment.event().succeed()
            for number, (bucket, added) in enumerate(zip(self.buckets, self.added.buckets, strict=True)):
                part = len(bucket) * share
                computed = added + part * self.core_seconds / self.layers
                yield from self.hosts.work(worker, part * seconds / self.layers, computed)
                if communicates:
                    through = environment.process(self.all_reduce(worker, update, number, before=through))
            self.builder.span(worker, SpanKind.BACKWARD, step, start, self.hosts.now)
            self.computed.setdefault(step, [0.0] * self.scenario.cluster.workers)[worker] = self.hosts.now
            # all-reduce
            yield through

    def all_reduce(self, worker: int, update: int, number: int, before: simpy.Event) -> Story:
        """All-reduces a worker's bucket `number`, whose gradients are computed, after the bucket before it."""
        yield before
        if self.cores is not None:
            yield self.hosts.exchange_work(worker, self.cores.bucket_byte_seconds * self.bucket_bytes[number])
        yield from self.all_reduces.join(self.call(update, number), worker, self.bucket_bytes[number])

    def call(self, update: int, number: int) -> int:
        """The number, in the whole run, of the all-reduce of bucket `number` of an update."""
        return update * len(self.buckets) + number

    def tell_update(self, update: int) -> None:
        """Writes the spans of the buckets, the contributions of the summed steps, and the update."""
        steps = range(update * self.policy.accumulate, (update + 1) * self.policy.accumulate)
        for number, num_bytes in enumerate(self.bucket_bytes):
            call = self.call(update, number)
            arrivals = self.all_reduces.arrivals[call]
            # A worker does not wait while its backward goes on.
            idle_from = [max(times) for times in zip(arrivals, self.computed[steps[-1]], strict=True)]
            self.all_reduces.tell(call, steps[-1], num_bytes, idle_from, label=f"bucket {number}")
        for worker in range(self.scenario.cluster.workers):
            for step in steps:
                self.builder.applied(update + 1, worker, step, read_version=update)
        self.builder.update(update + 1, max(self.all_reduces.ends[self.call(update, len(self.buckets) - 1)]))
