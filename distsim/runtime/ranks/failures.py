"""A real run with failures: workers end themselves at the simulator's times, torchrun starts all ranks again, and the
ranks go on from the last checkpoint.

save     after the first update that comes `checkpoint_every` after the last checkpoint, the keeper of the parameters
         (a server, or worker 0) writes them. All ranks pause for at least `checkpoint_cost`, and only then does the
         checkpoint count.
fail     a worker ends itself by SIGKILL at the wall-clock time that the simulator draws from the seed.
restart  torchrun starts all ranks again. They go on `restart_cost` after the failure, or later if starting takes
         longer. A failure in the meantime begins the restart again, as in the simulator.

Times are on the host's monotonic clock. Files in the run's folder hold its zero, the moment at which the ranks last
went on, and the checkpoint.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from distsim.engine.failures import failing
from distsim.files import write_text
from distsim.runtime.launch.rank_context import RankContext
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.recorder import Recorder
from distsim.scenario import Scenario

START_VARIABLE = "TORCHELASTIC_RESTART_COUNT"  # how often torchrun has restarted the ranks
GO_ON, SAVE = 1, 2


class Saved(NamedTuple):
    """A checkpoint, after so many updates and steps of each worker. state: saved by its keeper."""

    update: int
    step: int
    state: dict[str, Any]


NOTHING = Saved(0, 0, {})


def start_number() -> int:
    """How many times the ranks had been started before."""
    return int(os.environ.get(START_VARIABLE, "0"))


def begun(folder: Path, number: int) -> bool:
    """Whether the clock of scenario number `number` has started. Then all earlier scenarios are over."""
    return _clock_file(folder, number).exists()


def _clock_file(folder: Path, number: int) -> Path:
    return folder / f"clock-{number}.json"


class FailureRecovery:
    """A rank's checkpoints, failures and restarts in one scenario. saved: the checkpoint that it goes on from."""

    def __init__(self, context: RankContext, number: int, scenario: Scenario, recorder: Recorder) -> None:
        assert scenario.failures is not None
        self._failures, self._scenario, self._context = scenario.failures, scenario, context
        self._updates = scenario.policy.updates(scenario.steps, scenario.cluster.workers)
        self._keeper = scenario.servers[0] if scenario.server_decides else 0
        self._clock_file = _clock_file(context.folder, number)
        self._file = context.folder / f"checkpoint-{number}.pt"
        self._decisions_file = context.folder / f"decisions-{number}-{start_number()}"
        self._recorder = recorder
        self._over = threading.Event()
        self._since = 0.0  # work since this moment has not been saved
        self.saved = Saved(*torch.load(self._file, weights_only=True)) if self._file.exists() else NOTHING
        self._clock = json.loads(self._clock_file.read_text("utf-8")) if self._clock_file.exists() else None
        if context.rank == self._keeper:
            self._decisions_file.write_bytes(bytes(self._updates + 1))

    def begin(self, moment: float) -> float:
        """All ranks are ready at `moment` (monotonic seconds). Waits until the ranks go on; returns that moment."""
        coming = failing(self._failures.mean_time_between_seconds, self._scenario.seed, self._scenario.cluster.workers)
        failure, worker = next(coming)
        zero = start = moment
        if self._clock is not None:
            zero, before = self._clock["zero"], self._clock["since"]
            while zero + failure < before:
                failure, worker = next(coming)
            # A rank may also have failed for another reason, at an unknown time.
            failed = min(zero + failure, moment)
            start = failed + self._failures.restart_cost_seconds
            while zero + failure < max(start, moment):
                start = zero + failure + self._failures.restart_cost_seconds
                failure, worker = next(coming)
            start = max(start, moment)
            self._recorder.table("resumed")((self.saved.update, self.saved.step, failed, moment, start))
            self._context.slot.doing("the restart")
        sleep_until(start)
        self._since = start
        self._recorder.facts["left_barrier"] = zero
        self._recorder.table("left")((zero,))
        if self._context.rank == self._keeper:
            write_text(self._clock_file, json.dumps({"zero": zero, "since": start}))
        with self._decisions_file.open("r+b") as file:
            self._decisions = mmap.mmap(file.fileno(), 0)
        self._failure = zero + failure
        if self._context.rank == worker:
            threading.Thread(target=self._fail, name="failure", daemon=True).start()
        return start

    def _fail(self) -> None:
        if not self._over.wait(self._failure - time.monotonic()):
            os.kill(os.getpid(), signal.SIGKILL)

    def end(self) -> None:
        """The work is done: this rank fails no more."""
        self._over.set()

    def after_update(self, update: int, step: int, now: float, state: Callable[[], dict[str, Any]]) -> float:
        """Makes a checkpoint if one is due; returns the moment at which work goes on (monotonic seconds).

        update, step: how many updates and steps there were until `now`. state: returns the keeper's state.
        """
        if update == self._updates or not self._due(update, now):
            return now
        self._context.slot.doing(f"the checkpoint after update {update}")
        part = self._file.with_suffix(".part")
        if self._context.rank == self._keeper:
            torch.save((update, step, state()), part)
        sleep_until(now + self._failures.checkpoint_cost_seconds)
        if self._context.rank == self._keeper:
            if time.monotonic() >= self._failure:
                # A worker has failed during the checkpoint: it does not count, and torchrun is about to end this rank.
                self._context.slot.doing("the restart", waiting=True)
                threading.Event().wait()
            os.replace(part, self._file)
        self._since = time.monotonic()
        self._recorder.table("checkpoints")((update, now, self._since))
        return self._since

    def _due(self, update: int, now: float) -> bool:
        """Whether to save after this update. The keeper decides by its clock, and the other ranks follow."""
        if self._context.rank == self._keeper:
            due = now - self._since >= self._failures.checkpoint_every_seconds
            self._decisions[update] = SAVE if due else GO_ON
            return due
        self._context.slot.doing(f"the decision of worker {self._keeper} on update {update}", waiting=True)
        while not (decision := self._decisions[update]):
            time.sleep(20e-6)
        return decision == SAVE
