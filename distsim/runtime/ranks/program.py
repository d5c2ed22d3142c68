"""Workers that play a step's program for real: computing on one thread, exchanging on another.

apply, forward, backward    make the numbers that the next exchanges send, and sleep the rest of the drawn time.
exchange     our schedule of the collective, as soon as the exchange before and the computing that it needs are over.
Before a gather, the worker's own part gets new numbers, as an update would give; the gather brings them to all. A
reduce-scatter and an all-reduce sum gradients, or activations, of this step.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch

from distsim.policies import Exchange, Programmed
from distsim.runtime.ranks.computation import factor
from distsim.runtime.ranks.peers import WrongSumError
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats, pattern
from distsim.runtime.transport.schedule_run import ScheduleTask, runner_of
from distsim.scenario import Scenario

WARM_UP_STEPS = 3


class Part:
    """One exchange of the program on one worker: the numbers that it carries, and their schedule.

    own: where an all-gather starts from, or a reduce-scatter ends with: the worker's part of the numbers.
    """

    def __init__(self, scenario: Scenario, worker: int, exchange: Exchange, first_tag: int, slot: StatusSlot) -> None:
        self._worker, self._workers, self.exchange = worker, scenario.cluster.workers, exchange
        schedule = scenario.schedule(exchange.kind)
        self.numbers = torch.zeros(num_floats(exchange.num_bytes))
        self._pattern = pattern(len(self.numbers))
        bounds = schedule.chunk_bounds(len(self.numbers))
        held = dict(schedule.start or schedule.end or ()).get(worker)
        self.own = slice(None) if held is None else slice(bounds[held], bounds[held + 1])
        self.tags = sum(1 for _ in schedule.transfers())
        sends = scenario.communication.sends
        self.runner = runner_of(ScheduleTask(schedule, worker, len(self.numbers), sends, first_tag), slot)

    def make(self, step: int) -> None:
        """Writes the numbers that this worker brings to the exchange of a step."""
        if self.exchange.kind == "all_gather":
            torch.mul(self._pattern[self.own], step + 1, out=self.numbers[self.own])
        else:
            torch.mul(self._pattern, factor(self._worker, step), out=self.numbers)

    def check(self, step: int) -> None:
        """Raises WrongSumError where the exchange of this step did not leave what it should."""
        scale, where = step + 1, slice(None)
        if self.exchange.kind != "all_gather":
            scale, where = sum(factor(worker, step) for worker in range(self._workers)), self.own
        wrong = int((self.numbers[where] != self._pattern[where] * scale).sum())
        if wrong:
            raise WrongSumError(
                f"{wrong} of {self.numbers[where].numel()} numbers of the last {self.exchange.kind} of unit "
                f"{self.exchange.unit} are wrong at worker {self._worker}"
            )


class ProgramWorker:
    """The role of one worker: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        assert isinstance(scenario.policy, Programmed)
        self._program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
        self._steps = scenario.steps
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._parts: list[Part] = []
        for exchange in self._program.exchanges:
            first_tag = sum(part.tags for part in self._parts)
            self._parts.append(Part(scenario, worker, exchange, first_tag, slot))
        self._exchanging = ThreadPoolExecutor(1, "exchange")
        self._recorder, self._slot, self._done_before = recorder, slot, done_before
        recorder.facts["floats"] = [len(part.numbers) for part in self._parts]

    def warm_up(self) -> None:
        """Opens the connections and touches the memory."""
        for step in range(WARM_UP_STEPS):
            self._step(step, time.monotonic(), 0.0, Recorder(), more=True)

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
        for step in range(self._steps):
            more = step + 1 < self._steps
            start = self._step(step, start, self._times[step], self._recorder, more=more)
            self._slot.done(self._done_before + step + 1)
        self._exchanging.shutdown()

    def _step(self, step: int, start: float, seconds: float, recorder: Recorder, *, more: bool) -> float:
        """Computes one step, while a thread exchanges; returns when both are through."""
        pieces, computed = self._program.computations, recorder.table("computations")
        done = [threading.Event() for _ in pieces]
        over = [threading.Event() for _ in self._parts]
        ended = [0.0] * len(self._parts)
        exchanging = self._exchanging.submit(self._exchange, step, done, over, ended, recorder, more=more)
        for number, piece in enumerate(pieces):
            self._slot.doing(f"{piece.kind} of {self._program.label(piece)} in step {step}")
            if piece.after and not over[piece.after - 1].is_set():
                self._slot.doing(f"wait of step {step} for its exchange {piece.after - 1}", waiting=True)
                over[piece.after - 1].wait()
                start = time.monotonic()
            if piece.after:
                start = max(start, ended[piece.after - 1])  # which may have come after `start`, and before this line
            for part in self._parts:
                if part.exchange.after == number + 1:
                    part.make(step)
            sleep_until(start + piece.share * seconds)
            end = time.monotonic()
            computed((step, number, start, end))
            done[number].set()
            start = end
        exchanging.result()
        return time.monotonic()

    def _exchange(
        self, step: int, done: list[threading.Event], over: list[threading.Event], ended: list[float],
        recorder: Recorder, *, more: bool,
    ) -> None:  # fmt: skip
        """Makes the exchanges of one step, one after the other, and notes in `ended` when they are over."""
        told = recorder.table("all_reduces")
        try:
            for number, part in enumerate(self._parts):
                if part.exchange.after:
                    done[part.exchange.after - 1].wait()
                call, arrival = step * len(self._parts) + number, time.monotonic()
                part.runner.run(part.numbers, call, recorder, more=more)
                ended[number] = time.monotonic()
                told((call, arrival, ended[number]))
                over[number].set()
        finally:
            for event in over:  # the computing thread goes on, and finds the error at the end of its step
                event.set()

    def verify(self) -> None:
        """Raises WrongSumError where the last step's exchanges did not leave the right numbers."""
        for part in self._parts:
            part.check(self._steps - 1)
