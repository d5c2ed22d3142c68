"""The roles of ranks in a run with parameter servers that decide, and their warm-up.

The warm-up is a short synchronous run without compute. It opens the same connections and touches the memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from distsim.errors import InputError
from distsim.policies import FlexRR, Rule, Synchronous, WithServer
from distsim.policies.own_rule import load_rule
from distsim.runtime.launch.rank_context import RankContext
from distsim.runtime.ranks.computation import Training
from distsim.runtime.ranks.failures import FailureRecovery
from distsim.runtime.ranks.flexrr_sums import total_weight
from distsim.runtime.ranks.flexrr_worker import FlexRRWorker
from distsim.runtime.ranks.server import Server, ServerTask
from distsim.runtime.ranks.server_parameters import FirstParameters
from distsim.runtime.ranks.task import flat, task_of
from distsim.runtime.ranks.work_assigner import AssigningServer, Mailboxes
from distsim.runtime.ranks.worker import CancelledWorker, ServerProxy, Worker, WorkerTask
from distsim.runtime.ranks.worker_model import shares
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message, num_floats
from distsim.runtime.transport.shared_buffer import SharedBuffer
from distsim.scenario import Scenario

WARM_UP_STEPS = 3


@dataclass(frozen=True)
class ServerRoles:
    """Makes the role of this rank in one scenario.

    rule: the user's own rule, "my_rule.py:MyRule", in place of the policy's. number: of the scenario in the job. done:
    steps of the scenarios before. recovery: only in a run with failures.
    """

    scenario: Scenario
    rule: str | None
    context: RankContext
    number: int
    done: int
    recovery: FailureRecovery | None = None

    def warm_up(self) -> float | None:
        """Opens the connections and touches the memory.

        Returns the seconds that a server's own work for an update took; None for a worker.
        """
        scenario = self.scenario
        short = scenario.model_copy(
            update={
                "policy": Synchronous(),
                "steps": WARM_UP_STEPS,
                "communication": scenario.communication.model_copy(update={"receive": scenario.receive}),
            }
        )
        warm, recorder = ServerRoles(short, None, self.context, self.number, self.done - WARM_UP_STEPS), Recorder()
        warm.role(recorder, idle=True).run(time.monotonic())
        updates = recorder.rows("updates")[1:]  # the first touches the memory
        return median(end - begin for _, begin, end in updates) if updates else None

    def role(self, recorder: Recorder, *, idle: bool = False) -> Server | Worker:
        """The role, to be run from an agreed moment on. idle: without compute."""
        if self.context.rank not in self.scenario.servers:
            return self._worker(recorder, self._agree(None), idle)
        workers = self.scenario.cluster.workers
        rule: Rule = load_rule(self.rule, workers) if self.rule else self._policy.rule(workers)
        return self._server(recorder, rule, self._agree(rule))

    def _agree(self, rule: Rule | None) -> bool:
        """Whether the rule cancels. Only the server knows a user's own rule, and it tells the workers."""
        if self.rule is None:
            return bool(getattr(self._policy, "cancel", False))
        self.context.slot.doing("the loading of the rule", waiting=rule is None)
        cancels = bool(backend.broadcast(int(getattr(rule, "cancel", False)), self.scenario.servers[0]))
        if cancels and len(self.scenario.servers) > 1:
            raise InputError.of(
                "communication.servers", len(self.scenario.servers), "makes no sense with a rule that cancels",
                "write servers = 1",
            )  # fmt: skip
        return cancels

    def _server(self, recorder: Recorder, rule: Rule, cancels: bool) -> Server:
        scenario, policy = self.scenario, self._policy
        workers = scenario.cluster.workers
        updates = policy.updates(scenario.steps, workers)

        def progress(version: int) -> None:
            self.context.slot.done(self.done + version * scenario.steps // updates)

        weight = total_weight(policy.items) if isinstance(policy, FlexRR) else 1
        task = ServerTask(
            rule, workers, updates, self._floats, scenario.receive, cancels, progress,
            weight=weight, model=self._first_parameters(), recovery=self.recovery,
        )  # fmt: skip
        channels = [self._channel(worker, recorder) for worker in range(workers)]
        if isinstance(policy, FlexRR):
            mailboxes = self._mailboxes(range(workers))
            return AssigningServer(
                policy.plan(workers), mailboxes, self.context.rank, task, channels, recorder, self.context.slot
            )
        return Server(task, channels, recorder, self.context.slot)

    def _channel(self, worker: int, recorder: Recorder) -> Channel:
        shared = self._shared_buffer(worker, self.context.rank)
        if shared is None:
            return Channel(worker, recorder.tally)
        return Channel(worker, recorder.tally, outgoing=shared.parameters, incoming=shared.gradient)

    def _worker(self, recorder: Recorder, cancels: bool, idle: bool) -> Worker:
        scenario, policy, worker = self.scenario, self._policy, self.context.rank
        times = scenario.compute_times()
        times.first(worker, scenario.steps)  # drawn before the clock starts

        def seconds(step: int, read_version: int) -> float:
            return 0.0 if idle else times(worker, read_version if policy.has_global_step else step)

        last_step = scenario.steps if getattr(policy, "stop", "total") == "per_worker" else None
        servers = [self._server_proxy(server, recorder) for server in scenario.servers]
        gradient = torch.zeros(num_floats(scenario.gradient_bytes))
        training = Training(scenario, worker, gradient) if scenario.workload.model is not None else None
        work = WorkerTask(worker, seconds, last_step, training, self.recovery.saved.step if self.recovery else 0)
        if isinstance(policy, FlexRR):
            mailboxes = self._mailboxes([worker])
            return FlexRRWorker(policy, scenario.cluster.workers, mailboxes, work, servers, recorder, self.context.slot)
        role = CancelledWorker if cancels else Worker
        return role(work, servers, recorder, self.context.slot)

    def _server_proxy(self, server: int, recorder: Recorder) -> ServerProxy:
        slot, tally, shared = self.context.slot, recorder.tally, self._shared_buffer(self.context.rank, server)
        if shared is None:
            return ServerProxy(Channel(server, tally), Message(self._floats), recorder, slot)
        channel = Channel(server, tally, outgoing=shared.gradient, incoming=shared.parameters)
        return ServerProxy(channel, shared.gradient, recorder, slot)

    def _shared_buffer(self, worker: int, server: int) -> SharedBuffer | None:
        """The buffer that the two share if they are on one host."""
        if self.scenario.host(server) != worker:
            return None
        return SharedBuffer(self.context.folder, f"{self.number}-{server}", self._floats)

    def _mailboxes(self, workers: Sequence[int]) -> Mailboxes:
        return Mailboxes(self.context.folder, str(self.number), workers)

    @property
    def _policy(self) -> WithServer:
        assert isinstance(self.scenario.policy, WithServer), "checked before the launch"
        return self.scenario.policy

    @property
    def _floats(self) -> int:
        """How many numbers are in one server's share of the parameters."""
        servers = len(self.scenario.servers)
        if self.scenario.workload.model is None:
            return num_floats(self.scenario.gradient_bytes / servers)
        return math.ceil(num_floats(self.scenario.gradient_bytes) / servers)

    def _first_parameters(self) -> FirstParameters | None:
        """The first parameters of this server's share of the model; None without a model."""
        scenario = self.scenario
        if scenario.workload.model is None:
            return None
        task = task_of(scenario, 0, torch.device("cpu"))
        first = flat(task.parameters)
        share = shares(first.numel(), len(scenario.servers))[scenario.servers.index(self.context.rank)]
        return FirstParameters(first[share], task.learning_rate)
