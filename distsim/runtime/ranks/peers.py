"""Workers that sum among themselves: compute -> all_reduce.

compute      fill in the gradient, or compute it for real, and sleep the drawn time.
all_reduce   synchronous: the gradients, after each step. Local SGD: the parameters, after every `period` steps and at
             the end.
Where the all-reduce follows a schedule with servers, the servers are ranks that do nothing else.
"""

from __future__ import annotations

import time
import zlib

import torch

from distsim.runtime.devices.device import Device
from distsim.runtime.ranks.computation import Filling, computation_of, factor
from distsim.runtime.ranks.failures import NOTHING, FailureRecovery
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.all_reduce import all_reduce_of, task_of
from distsim.runtime.transport.messages import num_floats, pattern
from distsim.runtime.transport.schedule_run import runner_of
from distsim.scenario import Scenario

WARM_UP_CALLS = 3


class WrongSumError(RuntimeError):
    """An all-reduce did not give the sum."""


class Peer:
    """The role of one worker: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(
        self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int, device: Device,
        recovery: FailureRecovery | None = None,
    ) -> None:  # fmt: skip
        self._scenario = scenario
        self._workers = scenario.cluster.workers
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._local = scenario.policy.averages_parameters
        self._computation = computation_of(scenario, worker, device)
        self._shared = self._computation.parameters if self._local else self._computation.gradient
        self._all_reduce = all_reduce_of(scenario, worker, self._shared.numel(), slot, device.group)
        self._stopwatch = device.stopwatch
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before
        self._recovery = recovery
        recorder.facts["num_bytes"] = self._shared.nbytes

    def warm_up(self) -> None:
        """Opens the connections and touches the memory."""
        before = self._computation.parameters.clone()
        for call in range(WARM_UP_CALLS):
            self._computation.work(call, time.monotonic())
            self._all_reduce(self._shared, call, Recorder(), more=True)
        self._computation.parameters.copy_(before)
        if self._recovery is not None and (state := self._recovery.saved.state):
            self._computation.parameters.copy_(state["parameters"])
        self._stopwatch.wait()

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
        slot, steps, computation = self._slot, self._scenario.steps, self._computation
        computed, reduced = self._recorder.table("computes"), self._recorder.table("all_reduces")
        worked = self._recorder.table("exchange_work")
        computation.record_in(self._recorder)
        saved = NOTHING if self._recovery is None else self._recovery.saved
        call = saved.update
        for step in range(saved.step, steps):
            # compute
            slot.doing(f"compute of step {step}")
            begun = computation.work(step, start)
            if self._local:
                computation.descend(1.0)
            sleep_until(begun + self._times[step])
            start = arrival = self._stopwatch.wait()
            computed((step, call, begun, arrival))
            # all_reduce
            if self._scenario.policy.updates_after(step, steps):
                slot.doing(f"all_reduce of step {step}", waiting=True)
                before = time.process_time()
                self._all_reduce(self._shared, call, self._recorder, more=step + 1 < steps)
                start = self._stopwatch.wait()
                reduced((call, arrival, start))
                worked((call, time.process_time() - before))
                self._learn()
                call += 1
                if self._recovery is not None:
                    start = self._recovery.after_update(call, step + 1, start, self._state)
            slot.done(self._done_before + step + 1)

    def _state(self) -> dict[str, object]:
        return {"parameters": self._computation.parameters}

    def _learn(self) -> None:
        """Applies the sum. Without a model, `verify` looks at the last sum of gradients only."""
        if self._local:
            self._shared.mul_(1.0 / self._workers)
        elif not isinstance(self._computation, Filling):
            self._computation.descend(1.0 / self._workers)

    def verify(self) -> None:
        """Raises WrongSumError where the last all-reduce did not give the sum over all workers."""
        if not isinstance(self._computation, Filling):
            check_equal(self._computation.parameters, self._workers)
            return
        steps = range(self._scenario.steps)
        if self._local:
            total = sum(factor(worker, step) for worker in range(self._workers) for step in steps)
            expected = pattern(self._shared.numel()) * (-total / self._workers)
            # Every step, sum and division may be rounded by half a unit in the last place of float32.
            tolerance = 2.0**-24 * (self._workers + 2) * len(steps)
        else:
            total = sum(factor(worker, steps[-1]) for worker in range(self._workers))
            expected = pattern(self._shared.numel()) * total
            tolerance = 0.0
        wrong = int((~torch.isclose(self._shared.cpu(), expected, rtol=tolerance, atol=0.0)).sum())
        if wrong:
            raise WrongSumError(
                f"{wrong} of {self._shared.numel()} numbers of the last all_reduce are not the "
                f"{'mean' if self._local else 'sum'} over {self._workers} workers"
            )


class ScheduleServer:
    """The role of a server that only takes part in the workers' all-reduces, as their schedule says."""

    def __init__(
        self,
        scenario: Scenario,
        rank: int,
        recorder: Recorder,
        slot: StatusSlot,
        recovery: FailureRecovery | None = None,
    ) -> None:
        self._scenario = scenario
        self._first = 0 if recovery is None else recovery.saved.update
        self._sums = torch.zeros(num_floats(scenario.gradient_bytes))
        self._runner = runner_of(task_of(scenario, rank, self._sums.numel()), slot)
        self._recorder = recorder

    def warm_up(self) -> None:
        """Takes part in the workers' warm-up."""
        for call in range(WARM_UP_CALLS):
            self._serve(call, Recorder(), more=True)

    def run(self, start: float) -> None:  # noqa: ARG002 - a server is ready at once
        """Takes part in all of the workers' all-reduces."""
        updates = self._scenario.policy.updates(self._scenario.steps, self._scenario.cluster.workers)
        for call in range(self._first, updates):
            self._serve(call, self._recorder, more=call + 1 < updates)

    def _serve(self, call: int, recorder: Recorder, *, more: bool) -> None:
        self._sums.zero_()
        self._runner.run(self._sums, call, recorder, more=more)

    def verify(self) -> None:
        """Joins the workers' comparison of parameters, which all ranks must call."""
        if self._scenario.workload.model is not None:
            check_equal(self._sums, self._scenario.cluster.workers)


def check_equal(parameters: torch.Tensor, workers: int, apart: int = 1) -> None:
    """Raises WrongSumError where two workers have different parameters. All ranks must call it.

    apart: workers that are so many ranks apart should have the same.
    """
    checksums = backend.all_gather(zlib.crc32(parameters.cpu().numpy().data))[:workers]
    for worker, checksum in enumerate(checksums):
        if checksum != checksums[worker % apart]:
            raise WrongSumError(f"worker {worker} ends with other parameters than worker {worker % apart}")
