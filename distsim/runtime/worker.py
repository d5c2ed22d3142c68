"""A worker with a server: compute -> push -> wait -> pull, until an answer says stop.

compute: the drawn time is slept. push: the gradient goes to the server. wait, pull: the answer brings the parameters
of a newer version. At the end the worker says goodbye, with a checksum of the parameters it has.

Under a rule that cancels, an answer may come before the push: a thread always has a receive posted, and an answer that
comes during compute ends that step. A push that has begun goes through, and the server throws it away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from distsim.runtime.clock import sleep_until, wait_until
from distsim.runtime.messages import HEADER_BYTES, Kind, Message, pattern
from distsim.runtime.recorder import Recorder
from distsim.runtime.status import StatusSlot


@dataclass(frozen=True)
class Work:
    """What a worker is to do. seconds: of compute, by (step, version read)."""

    worker: int
    server: int
    floats: int
    seconds: Callable[[int, int], float]


class Worker:
    """One worker's story under a rule that never cancels."""

    def __init__(self, work: Work, recorder: Recorder, slot: StatusSlot) -> None:
        self._work = work
        self._slot = slot
        self._gradient = Message(work.floats)
        torch.mul(pattern(work.floats), work.worker + 1, out=self._gradient.payload)
        self._parameters = Message(work.floats)
        self._computed = recorder.table("computes")
        self._pushed = recorder.table("pushes")
        self._pulled = recorder.table("pulls")
        recorder.facts["num_bytes"] = self._gradient.num_bytes

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        step, version, answer = 0, 0, self._parameters
        while True:
            # compute
            self._slot.doing(f"compute of step {step}")
            sleep_until(start + self._work.seconds(step, version))
            self._computed((step, version, start, time.monotonic()))
            # push
            self._slot.doing(f"push of step {step} to the server, rank {self._work.server}", waiting=True)
            self._push(step, version)
            # wait, pull
            self._slot.doing(f"recv from the server, rank {self._work.server}, after step {step}", waiting=True)
            dist.recv(answer.tensor, src=self._work.server)
            start = time.monotonic()
            self._pulled((answer.version, start))
            if answer.stop:
                return self._goodbye()
            version, step = answer.version, step + 1

    def _push(self, step: int, version: int) -> None:
        self._gradient.write(Kind.PUSH, step=step, version=version)
        start = time.monotonic()
        dist.send(self._gradient.tensor, dst=self._work.server)
        self._pushed((step, version, start, time.monotonic()))

    def _goodbye(self) -> None:
        self._slot.doing("goodbye", waiting=True)
        self._gradient.write(Kind.GOODBYE, checksum=self._parameters.checksum())
        dist.send(self._gradient.tensor[:HEADER_BYTES], dst=self._work.server)


class CancelledWorker(Worker):
    """One worker's story under a rule that cancels."""

    def __init__(self, work: Work, recorder: Recorder, slot: StatusSlot) -> None:
        super().__init__(work, recorder, slot)
        self._spare = Message(work.floats)
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._answered_at = 0.0
        self._error: BaseException | None = None

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        listener = threading.Thread(target=self._listen, name="answers", daemon=True)
        listener.start()
        step, version = 0, 0
        while True:
            # compute
            self._slot.doing(f"compute of step {step}")
            cancelled = wait_until(start + self._work.seconds(step, version), self._news)
            end = time.monotonic()
            self._computed((step, version, start, end))
            if not cancelled:
                # push
                self._slot.doing(f"push of step {step} to the server, rank {self._work.server}", waiting=True)
                self._push(step, version)
                end = time.monotonic()
                # wait, pull
                self._slot.doing(f"recv from the server, rank {self._work.server}, after step {step}", waiting=True)
                self._news.wait()
            with self._lock:
                self._news.clear()
                if self._error is not None:
                    raise self._error
                # Answers that came during a push are skipped, all but the newest.
                version, stop, answered_at = self._parameters.version, self._parameters.stop, self._answered_at
            if stop:
                listener.join()
                return self._goodbye()
            start, step = answered_at if cancelled else max(answered_at, end), step + 1

    def _listen(self) -> None:
        try:
            while True:
                dist.recv(self._spare.tensor, src=self._work.server)
                now = time.monotonic()
                with self._lock:
                    self._parameters, self._spare = self._spare, self._parameters
                    self._answered_at = now
                    stop = self._parameters.stop
                    self._pulled((self._parameters.version, now))
                    self._news.set()
                if stop:
                    return
        except BaseException as error:  # noqa: BLE001 - the worker's own thread raises it
            with self._lock:
                self._error = error
                self._news.set()
