"""A worker among peers: compute -> all_reduce, at each step.

compute: the gradient is filled in, and the rest of the drawn time is slept.
all_reduce: the backend sums the gradients of all workers. How its bytes travel cannot be seen from outside.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from distsim.runtime.clock import sleep_until
from distsim.runtime.messages import num_floats, pattern
from distsim.runtime.recorder import Recorder
from distsim.runtime.status import StatusSlot
from distsim.scenario import Scenario

WARM_UP_STEPS = 3
LARGEST_FACTOR = 1000  # keeps the sums within the whole numbers that float32 holds exactly


class WrongSumError(RuntimeError):
    """An all-reduce gave something else than the sum."""


class Peer:
    """One worker's story; `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        self._worker = worker
        self._workers = scenario.cluster.workers
        self._steps = scenario.steps
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._pattern = pattern(num_floats(scenario.gradient_bytes))
        self._gradient = torch.zeros_like(self._pattern)
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before
        recorder.facts["num_bytes"] = 4 * self._gradient.numel()

    def warm_up(self) -> None:
        """Opens the connections and touches the memory."""
        for step in range(WARM_UP_STEPS):
            self._fill(step)
            dist.all_reduce(self._gradient)

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        slot, done_before = self._slot, self._done_before
        computed, reduced = self._recorder.table("computes"), self._recorder.table("all_reduces")
        for step in range(self._steps):
            # compute
            slot.doing(f"compute of step {step}")
            self._fill(step)
            sleep_until(start + self._times[step])
            arrival = time.monotonic()
            computed((step, step, start, arrival))
            # all_reduce
            slot.doing(f"all_reduce of step {step}", waiting=True)
            dist.all_reduce(self._gradient)
            start = time.monotonic()
            reduced((step, arrival, start))
            slot.done(done_before + step + 1)

    def verify(self) -> None:
        """Raises WrongSumError where the last all-reduce did not give the sum of all gradients."""
        factor = sum(self._factor(worker, self._steps - 1) for worker in range(self._workers))
        wrong = int((self._gradient != self._pattern * factor).sum())
        if wrong:
            raise WrongSumError(
                f"{wrong} of {self._gradient.numel()} numbers of the last all_reduce are not the sum over "
                f"{self._workers} workers"
            )

    def _fill(self, step: int) -> None:
        torch.mul(self._pattern, self._factor(self._worker, step), out=self._gradient)

    @staticmethod
    def _factor(worker: int, step: int) -> int:
        return worker + 1 + step % LARGEST_FACTOR
