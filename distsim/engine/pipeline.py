"""The story of pipeline parallelism. Each worker holds one stage of the model and has its own order of pieces.

receive     a stage waits for the message that its next piece needs from a neighbour.
compute     forward or backward of one micro-batch.
send        an activation leaves for the next stage, or its gradient, of equal size, for the stage before. The stage
            goes on meanwhile.
flush       a step ends when all stages have finished all micro-batches: the update.
"""

from __future__ import annotations

from dataclasses import dataclass

import simpy

from distsim.engine.simulated_hosts import ROUNDING, SimulatedHosts, Story, finished
from distsim.policies import Pipeline
from distsim.profile import stage_times
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


@dataclass(frozen=True)
class Message:
    """The result of one micro-batch that one stage sends to a neighbour.

    sent: the source has the message. wanted: the target waits for it. arrived: an event with the transfer's start time.
    """

    sent: simpy.Event
    wanted: simpy.Event
    arrived: simpy.Event


class PipelineStory:
    """Stages that pass activations forward and gradients back.

    The drawn compute time is the time of one whole batch on one stage, forward and backward. A micro-batch takes
    (1 - backward_share) / micro_batches of this time forward, and backward_share / micro_batches backward. A profile
    adds the same share of its stages' times; its optimizer is left out.
    Messages between two neighbours travel one after the other in each direction. With eager sends a message leaves when
    the source has the message. With rendezvous sends the target must also be waiting for it.
    """

    def __init__(self, scenario: Scenario) -> None:
        assert isinstance(scenario.policy, Pipeline)
        self.scenario = scenario
        self.policy = scenario.policy
        self.num_stages = scenario.cluster.workers
        self.eager = scenario.communication.sends == "eager"
        self.message_bytes = (scenario.workload.handed_on_bytes or 0.0) / self.policy.micro_batches
        self.added = stage_times(scenario.workload.profile, self.num_stages, self.policy.stage_layers or ())
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.messages: dict[tuple[int, int, int, int], Message] = {}
        self.through: list[int] = []  # the stages that have finished this step
        self.flush = self.hosts.environment.event()

    def run(self) -> Trace:
        """Simulates the run to its end."""
        for stage in range(self.num_stages):
            self.hosts.environment.process(self.worker(stage))
        for left in range(self.num_stages - 1):
            self.hosts.environment.process(self.wire(left, left + 1))
            self.hosts.environment.process(self.wire(left + 1, left))
        self.hosts.environment.run()
        return finished(self.builder, self.scenario)

    def worker(self, stage: int) -> Story:
        """One stage's steps."""
        share, count = self.scenario.workload.backward_share, self.policy.micro_batches
        for step in range(self.scenario.steps):
            seconds = self.compute_times(stage, step)
            for direction, micro in self.policy.order(stage, self.num_stages):
                source, target = (stage - 1, stage + 1) if direction == "forward" else (stage + 1, stage - 1)
                # receive
                if 0 <= source < self.num_stages:
                    yield from self.receive(source, stage, step, micro)
                # compute
                start = self.hosts.now
                added = self.added[stage][direction == "backward"]
                yield self.hosts.environment.timeout(
                    (1.0 - share if direction == "forward" else share) * seconds / count + added / count
                )
                kind = SpanKind.FORWARD if direction == "forward" else SpanKind.BACKWARD
                self.builder.span(stage, kind, step, start, self.hosts.now, label=f"micro-batch {micro}")
                # send
                if 0 <= target < self.num_stages:
                    self.message(stage, target, step, micro).sent.succeed()
            # flush
            yield from self.wait_for_all(stage, step)

    def receive(self, source: int, stage: int, step: int, micro: int) -> Story:
        """Waits for a message. The time before the message left counts as waiting."""
        asked = self.hosts.now
        message = self.message(source, stage, step, micro)
        message.wanted.succeed()
        began: float = yield message.arrived
        if began - asked > ROUNDING * began:
            self.builder.span(stage, SpanKind.WAIT, step, asked, began)

    def wait_for_all(self, stage: int, step: int) -> Story:
        """Waits for the flush. The last stage that finishes makes the update, and then all stages go on."""
        start, flush = self.hosts.now, self.flush
        self.builder.applied(step + 1, stage, step, read_version=step)
        self.through.append(stage)
        if len(self.through) == self.num_stages:
            self.builder.update(step + 1, self.hosts.now)
            self.through, self.flush = [], self.hosts.environment.event()
            flush.succeed()
        yield flush
        if self.hosts.now - start > ROUNDING * self.hosts.now:
            self.builder.span(stage, SpanKind.WAIT, step, start, self.hosts.now)

    def wire(self, source: int, target: int) -> Story:
        """Carries the messages from one stage to a neighbour, in the order of micro-batches."""
        for step in range(self.scenario.steps):
            for micro in range(self.policy.micro_batches):
                message = self.message(source, target, step, micro)
                yield message.sent
                if not self.eager:
                    yield message.wanted
                start = self.hosts.now
                yield self.hosts.send(source, target, self.message_bytes)
                num_bytes, end = self.message_bytes, self.hosts.now
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
