"""Workers that play a step's program for real: computing on one thread, each queue of exchanges on another.

apply, forward, backward    what `StepWork` computes: made-up numbers, or a part of a model's training.
exchange     our schedule of the collective, as soon as the exchange before and the computing that it needs are over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from distsim.collectives import Schedule
from distsim.policies import Programmed, StepProgram
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats
from distsim.runtime.transport.schedule_run import ScheduleRunner, ScheduleTask, runner_of
from distsim.scenario import Scenario

WARM_UP_STEPS = 3


class StepWork(Protocol):
    """What a worker computes in a step, and the numbers that its exchanges carry."""

    def prepare(self) -> None:
        """Is called once, before the steps of the warm-up."""
        ...

    def record_in(self, recorder: Recorder) -> None:
        """Is called once, after the warm-up: what it changed is undone, and the next steps are recorded."""
        ...

    def compute(self, step: int, queues: StepQueues) -> None:
        """Computes all pieces of a step in order, each between `queues.begin` and `queues.end`."""
        ...

    def numbers(self, exchange: int) -> torch.Tensor:
        """The vector of an exchange that begins: flat, of float32. The thread that exchanges it asks for it."""
        ...

    def exchanged(self, exchange: int) -> None:
        """Takes what the exchange has left in its vector. The thread that exchanged it calls it."""
        ...

    def verify(self, repeat: Callable[[int], None]) -> None:
        """Raises WrongSumError where the last step left wrong numbers. repeat: makes an exchange once more."""
        ...


class StepQueues:
    """One step of a worker under way: its queue of computing, and what it knows of the queue of exchanges.

    start: when the step began, in monotonic seconds. seconds: the drawn time.
    """

    def __init__(
        self, program: StepProgram, step: int, start: float, seconds: float, recorder: Recorder, slot: StatusSlot
    ) -> None:
        self._program, self._step, self._seconds, self._slot = program, step, seconds, slot
        self._record = recorder.table("computations")
        self._start = start
        self.done = [threading.Event() for _ in program.computations]
        self.over = [threading.Event() for _ in program.exchanges]
        self.ended = [0.0] * len(program.exchanges)
        self.failed = False

    def begin(self, number: int) -> None:
        """Begins computation `number`, as soon as the exchanges that it waits for are over."""
        piece = self._program.computations[number]
        self._slot.doing(f"{piece.kind} of {self._program.label(piece)} in step {self._step}")
        for exchange in piece.after:
            self.wait(exchange)

    def wait(self, exchange: int) -> None:
        """Returns when the exchange is over. Until then the computation that is under way has not begun."""
        if not self.over[exchange].is_set():
            self._slot.doing(f"wait of step {self._step} for its exchange {exchange}", waiting=True)
            self.over[exchange].wait()
            self._start = time.monotonic()
        self._start = max(self._start, self.ended[exchange])  # which may have come after `start`, and before this line

    def end(self, number: int, *, drawn_from: float | None = None) -> None:
        """Ends computation `number` when its share of the drawn time is over. Exchanges may begin that wait for it.

        drawn_from: when the drawn time begins, in monotonic seconds; with the computation, unless given.
        """
        if share := self._program.computations[number].share * self._seconds:
            sleep_until((self._start if drawn_from is None else drawn_from) + share)
        end = time.monotonic()
        self._record((self._step, number, self._start, end))
        self.done[number].set()
        self._start = end

    def give_up(self) -> None:
        """Ends all waits of the other thread after an error."""
        self.failed = True
        for event in (*self.done, *self.over):
            event.set()


def own_part(schedule: Schedule, worker: int, floats: int) -> slice:
    """Where an all-gather starts from, or a reduce-scatter ends with; everything of an all-reduce.

    >>> from distsim.collectives import reduce_scatter
    >>> own_part(reduce_scatter(3), worker=1, floats=10)
    slice(3, 6, None)
    """
    bounds = schedule.chunk_bounds(floats)
    held = dict(schedule.start or schedule.end or ()).get(worker)
    return slice(None) if held is None else slice(bounds[held], bounds[held + 1])


class ProgramWorker:
    """The role of one worker: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(
        self, scenario: Scenario, worker: int, work: StepWork, recorder: Recorder, slot: StatusSlot, done_before: int
    ) -> None:
        assert isinstance(scenario.policy, Programmed)
        self._program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
        self._steps = scenario.steps
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._work = work
        self._runners: list[ScheduleRunner] = []
        floats, first_tag = [], 0
        for exchange in self._program.exchanges:
            schedule = scenario.schedule(exchange.called)
            floats.append(num_floats(exchange.num_bytes))
            task = ScheduleTask(schedule, worker, floats[-1], scenario.communication.sends, first_tag)
            self._runners.append(runner_of(task, slot))
            first_tag += sum(1 for _ in schedule.transfers())
        self._exchanging = ThreadPoolExecutor(len(self._program.queues), "exchange")
        self._recorder, self._slot, self._done_before = recorder, slot, done_before
        recorder.facts["floats"] = floats

    def warm_up(self) -> None:
        """Opens the connections and touches the memory."""
        self._work.prepare()
        for step in range(WARM_UP_STEPS):
            self._step(step, time.monotonic(), 0.0, Recorder(), more=True)
        self._work.record_in(self._recorder)

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
        for step in range(self._steps):
            more = step + 1 < self._steps
            start = self._step(step, start, self._times[step], self._recorder, more=more)
            self._slot.done(self._done_before + step + 1)
        self._exchanging.shutdown()

    def _step(self, step: int, start: float, seconds: float, recorder: Recorder, *, more: bool) -> float:
        """Computes one step, while threads exchange; returns when all are through."""
        queues = StepQueues(self._program, step, start, seconds, recorder, self._slot)
        exchanging = [
            self._exchanging.submit(self._exchange, numbers, step, queues, recorder, more=more)
            for numbers in self._program.queues
        ]
        try:
            self._work.compute(step, queues)
        except BaseException:
            queues.give_up()
            self._exchanging.shutdown(wait=False, cancel_futures=True)
            raise
        for queue in exchanging:
            queue.result()
        return time.monotonic()

    def _exchange(
        self, numbers: Sequence[int], step: int, queues: StepQueues, recorder: Recorder, *, more: bool
    ) -> None:
        """Makes the exchanges of one step in one queue, one after the other."""
        told = recorder.table("all_reduces")
        try:
            for number in numbers:
                if after := self._program.exchanges[number].after:
                    queues.done[after - 1].wait()
                if queues.failed:
                    return
                call, arrival = step * len(self._runners) + number, time.monotonic()
                self._runners[number].run(self._work.numbers(number), call, recorder, more=more)
                self._work.exchanged(number)
                queues.ended[number] = time.monotonic()
                told((call, arrival, queues.ended[number]))
                queues.over[number].set()
        except BaseException:
            queues.give_up()  # the computing thread finds the error
            raise

    def verify(self) -> None:
        """Raises WrongSumError where the last step's exchanges did not leave the right numbers."""
        self._work.verify(self._repeat)

    def _repeat(self, number: int) -> None:
        self._runners[number].run(self._work.numbers(number), self._steps * len(self._runners), Recorder(), more=False)
        self._work.exchanged(number)
