"""The story of pipeline parallelism. Each worker belongs to one stage of the model and has its own order of pieces.

apply       the update of the worker's part of the parameters, where a profile tells its time.
receive     a worker waits for the message that its next piece needs from the neighbouring stage.
compute     forward or backward of one micro-batch; workers that share blocks sum activations after each half of one.
send        an activation leaves for the next stage, or its gradient, of equal size, for the stage before. The worker
            goes on meanwhile.
exchange    when a worker has done all its pieces and its last message has gone, it sums its gradients with those that
            have the same layers and other batches.
flush       a step ends when all workers have finished all micro-batches: the update.
"""

from __future__ import annotations

from dataclasses import dataclass

import simpy

from distsim.engine.peers import AllReduces
from distsim.engine.simulated_hosts import ROUNDING, SimulatedHosts, Story, finished
from distsim.pipeline_stages import stages_of
from distsim.policies import Pipeline
from distsim.policies.pipeline import Piece
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


@dataclass(frozen=True)
class Message:
    """The result of one micro-batch that one worker sends to a neighbour.

    sent: the source has the message. wanted: the target waits for it. arrived: an event with the transfer's start time.
    """

    sent: simpy.Event
    wanted: simpy.Event
    arrived: simpy.Event


class PipelineStory:
    """Stages that pass activations forward and gradients back.

    The drawn compute time is the time of one whole batch on one worker, forward and backward. A micro-batch takes
    (1 - backward_share) / micro_batches of this time forward, and backward_share / micro_batches backward. A profile
    adds the same share of its stages' times.
    Messages between two neighbours travel one after the other in each direction. With eager sends a message leaves when
    the source has the message. With rendezvous sends the target must also be waiting for it.
    """

    def __init__(self, scenario: Scenario) -> None:
        assert isinstance(scenario.policy, Pipeline)
        self.scenario = scenario
        self.policy = scenario.policy
        self.workers = scenario.cluster.workers
        self.stages = stages_of(self.policy, scenario.workload, self.workers)
        self.calls = self.stages.calls
        self.eager = scenario.communication.sends == "eager"
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.exchanges = AllReduces(self.hosts, scenario, self.builder)
        self.messages: dict[tuple[int, int, int, int], Message] = {}
        self.through: list[int] = []  # the workers that have finished this step
        self.flush = self.hosts.environment.event()

    def run(self) -> Trace:
        """Simulates the run to its end."""
        for worker in range(self.workers):
            self.hosts.environment.process(self.worker(worker))
        for left in range(self.workers - self.stages.width):
            self.hosts.environment.process(self.wire(left, left + self.stages.width))
            self.hosts.environment.process(self.wire(left + self.stages.width, left))
        self.hosts.environment.run()
        self.tell_exchanges()
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps."""
        width, count = self.stages.width, len(self.stages.of)
        stage = worker // width
        for step in range(self.scenario.steps):
            # apply
            if seconds := self.stages.of[stage].apply_seconds:
                start = self.hosts.now
                yield self.hosts.environment.timeout(seconds)
                self.builder.span(worker, SpanKind.APPLY, step, start, self.hosts.now)
            seconds = self.compute_times(worker, step)
            leaving: simpy.Event | None = None
            for piece in self.policy.order(stage, count):
                source, target = (worker - width, worker + width) if piece[0] == "forward" else (
                    worker + width, worker - width,
                )  # fmt: skip
                # receive
                if 0 <= source < self.workers:
                    yield from self.receive(source, worker, step, piece[1])
                # compute
                yield from self.compute(worker, step, piece, seconds)
                # send
                if 0 <= target < self.workers:
                    message = self.message(worker, target, step, piece[1])
                    message.sent.succeed()
                    leaving = message.arrived
            # exchange
            for place, exchange in enumerate(self.stages.gradients):
                if leaving is not None:
                    yield leaving
                number = self.stages.gradient_number(stage, place)
                yield from self.exchanges.join(self.call(step, number), worker, self.calls[number].num_bytes, exchange)
            # flush
            yield from self.wait_for_all(worker, step)

    def receive(self, source: int, worker: int, step: int, micro: int) -> Story:
        """Waits for a message. The time before the message left counts as waiting."""
        asked = self.hosts.now
        message = self.message(source, worker, step, micro)
        message.wanted.succeed()
        began: float = yield message.arrived
        if began - asked > ROUNDING * began:
            self.builder.span(worker, SpanKind.WAIT, step, asked, began)

    def compute(self, worker: int, step: int, piece: Piece, seconds: float) -> Story:
        """One piece, whose parts take shares of the drawn `seconds`; after some of them a sum."""
        direction, micro = piece
        kind, label = SpanKind.FORWARD if direction == "forward" else SpanKind.BACKWARD, f"micro-batch {micro}"
        place = 0
        for part in self.stages.of[worker // self.stages.width].parts(direction):
            start = self.hosts.now
            yield self.hosts.environment.timeout(part.share * seconds + part.added_seconds)
            self.builder.span(worker, kind, step, start, self.hosts.now, label=label)
            if part.summed:
                number = self.stages.sum_number(direction, micro, place)
                yield from self.exchanges.join(
                    self.call(step, number), worker, self.stages.message_bytes, self.stages.sums
                )
                place += 1

    def call(self, step: int, number: int) -> int:
        """The number, in the whole run, of exchange `number` of a step."""
        return step * len(self.calls) + number

    def tell_exchanges(self) -> None:
        """Writes the spans of all exchanges. A worker has nothing else to do while it exchanges."""
        for step in range(self.scenario.steps):
            for number, one in enumerate(self.calls):
                call = self.call(step, number)
                arrivals = self.exchanges.arrivals[call]
                workers = one.workers(self.stages.width)
                self.exchanges.tell(call, step, one.num_bytes, arrivals, one.label, one.exchange, workers)

    def wait_for_all(self, worker: int, step: int) -> Story:
        """Waits for the flush. The last worker that finishes makes the update, and then all workers go on."""
        start, flush = self.hosts.now, self.flush
        self.builder.applied(step + 1, worker, step, read_version=step)
        self.through.append(worker)
        if len(self.through) == self.workers:
            self.builder.update(step + 1, self.hosts.now)
            self.through, self.flush = [], self.hosts.environment.event()
            flush.succeed()
        yield flush
        if self.hosts.now - start > ROUNDING * self.hosts.now:
            self.builder.span(worker, SpanKind.WAIT, step, start, self.hosts.now)

    def wire(self, source: int, target: int) -> Story:
        """Carries the messages from one worker to a neighbour, in the order of micro-batches."""
        num_bytes = self.stages.message_bytes
        for step in range(self.scenario.steps):
            for micro in range(self.policy.micro_batches):
                message = self.message(source, target, step, micro)
                yield message.sent
                if not self.eager:
                    yield message.wanted
                start = self.hosts.now
                yield self.hosts.send(source, target, num_bytes)
                end = self.hosts.now
                self.builder.span(source, SpanKind.SEND, step, start, end, num_bytes, f"to worker {target}")
                self.builder.span(target, SpanKind.RECEIVE, step, start, end, num_bytes, f"from worker {source}")
                self.builder.transfer(source, target, num_bytes, start, end, chunk=micro)
                message.arrived.succeed(start)

    def message(self, source: int, target: int, step: int, micro: int) -> Message:
        """The message of one micro-batch between two neighbours. The first call creates the message."""
        key = (source, target, step, micro)
        if key not in self.messages:
            event = self.hosts.environment.event
            self.messages[key] = Message(event(), event(), event())
        return self.messages[key]
