"""A worker with servers: compute -> push -> wait -> pull, until all answers say stop.

compute: of a model forward and backward, and then the drawn time is slept. push: the gradient goes to the server.
wait, pull: the answer brings the parameters of a newer version. With several servers it does so with each at once, and
goes on when all have answered. At the end the worker says goodbye, with a checksum of the parameters it has.

Under a rule that cancels, an answer may come before the push: a thread always has a receive posted, and an answer that
comes during compute ends that step. A push that has begun goes through, and the server throws it away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from distsim.runtime.ranks.computation import Training
from distsim.runtime.ranks.worker_model import WorkerModel
from distsim.runtime.recording.clock import sleep_until, wait_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message, MessageKind, pattern


@dataclass(frozen=True)
class WorkerTask:
    """What a worker is to do.

    seconds: of compute, by (step, version read). last_step: how many steps; None: no end. training: the model; None:
    the gradient is the same pattern in all steps.
    first_step: above 0 where it goes on after a failure, with the parameters that the server sends it.
    """

    worker: int
    seconds: Callable[[int, int], float]
    last_step: int | None = None
    training: Training | None = None
    first_step: int = 0


class ServerProxy:
    """One server, as a worker knows it: the gradient for it, and the parameters that it has answered with.

    gradient: the buffer to push from, for this server's share of the parameters.
    """

    def __init__(self, channel: Channel, gradient: Message, recorder: Recorder, slot: StatusSlot) -> None:
        self.channel = channel
        self.server = channel.rank
        self.gradient = gradient
        self.parameters = Message(gradient.payload.numel())
        self.version = 0  # that the worker has read last
        self.stop = False  # whether that was the last one
        self._slot = slot
        self._pushed = recorder.table("pushes")
        self._pulled = recorder.table("pulls")

    def exchange(self, step: int) -> None:
        """Push, wait, pull."""
        self.push(step)
        # wait, pull
        self._slot.doing(f"recv from the server, rank {self.server}, after step {step}", waiting=True)
        self.pull()

    def push(self, step: int) -> None:
        """The gradient's channel to the server."""
        self._slot.doing(f"push of step {step} to the server, rank {self.server}", waiting=True)
        self.gradient.write(MessageKind.PUSH, step=step, version=self.version)
        start = time.monotonic()
        self.channel.send(self.gradient)
        self._pushed((self.server, step, self.version, start, time.monotonic()))

    def pull(self) -> None:
        """The parameters' channel back."""
        self.receive(self.parameters)
        self.read(self.parameters)

    def receive(self, answer: Message) -> float:
        """The next answer comes into this buffer; when it was here."""
        self.channel.receive(answer)
        now = time.monotonic()
        self._pulled((self.server, answer.version, now))
        return now

    def read(self, answer: Message) -> None:
        """The worker goes on from this answer."""
        self.parameters, self.version, self.stop = answer, answer.version, answer.stop

    def through(self) -> None:
        """Tells the server that no push will follow."""
        self._slot.doing(f"recv of the end from the server, rank {self.server}", waiting=True)
        self.gradient.write(MessageKind.THROUGH)
        self.channel.send(self.gradient)

    def goodbye(self) -> None:
        """The last message."""
        self._slot.doing("goodbye", waiting=True)
        self.gradient.write(MessageKind.GOODBYE, checksum=self.parameters.checksum())
        self.channel.send(self.gradient)


class Worker:
    """One worker's story under a rule that never cancels."""

    def __init__(self, work: WorkerTask, servers: Sequence[ServerProxy], recorder: Recorder, slot: StatusSlot) -> None:
        self._work = work
        self._servers = servers
        self._slot = slot
        self._computed = recorder.table("computes")
        self._pool = ThreadPoolExecutor(len(servers), "with server") if len(servers) > 1 else None
        self._model: WorkerModel | None = None
        if work.training is not None:
            work.training.record_in(recorder)
            self._model = WorkerModel(work.training, [server.gradient for server in servers])
        else:
            for server in servers:
                torch.mul(pattern(server.gradient.payload.numel()), work.worker + 1, out=server.gradient.payload)
        recorder.facts["num_bytes"] = servers[0].gradient.num_bytes

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        step = self._work.first_step
        if step:
            start = self._come_back()
        while not self._over and step != self._work.last_step:
            self._compute(step, start)
            start = self._exchange(step)
            step += 1
        self._await_end()
        self._end()

    def _come_back(self) -> float:
        """The parameters of the last checkpoint come from the servers; when they are here."""
        for server in self._servers:
            self._slot.doing(f"recv of the checkpoint from the server, rank {server.server}", waiting=True)
            server.pull()
        return time.monotonic()

    @property
    def _over(self) -> bool:
        return all(server.stop for server in self._servers)

    def _compute(self, step: int, start: float) -> bool:
        """A step's work; whether it was cancelled."""
        version = self._servers[0].version
        self._slot.doing(f"compute of step {step}")
        if self._model is not None:
            start = self._model.work(step, start)
        cancelled = self._sleep(start + self._work.seconds(step, version))
        self._computed((step, version, start, time.monotonic()))
        return cancelled

    def _sleep(self, until: float) -> bool:
        sleep_until(until)
        return False

    def _exchange(self, step: int) -> float:
        """With each server at once: push, wait, pull; from when on the worker can go on."""
        if self._pool is None:
            self._servers[0].exchange(step)
        else:
            servers = [one.server for one in self._servers]
            self._slot.doing(f"exchange of step {step} with servers {servers}", waiting=True)
            for exchanged in [self._pool.submit(server.exchange, step) for server in self._servers]:
                exchanged.result()
        self._adopt()
        return time.monotonic()

    def _adopt(self) -> None:
        """The model goes on from the parameters that have come."""
        if self._model is not None:
            self._model.adopt([server.parameters.payload for server in self._servers])

    def _await_end(self) -> None:
        """A worker that has done all its steps waits until the run is over."""
        if not self._over:
            for server in self._servers:
                server.through()
                while not server.stop:
                    server.pull()

    def _end(self) -> None:
        """The worker leaves."""
        for server in self._servers:
            server.goodbye()
        if self._pool is not None:
            self._pool.shutdown()


class CancelledWorker(Worker):
    """One worker's story under a rule that cancels; such a rule has one server."""

    def __init__(self, work: WorkerTask, servers: Sequence[ServerProxy], recorder: Recorder, slot: StatusSlot) -> None:
        super().__init__(work, servers, recorder, slot)
        (self._server,) = servers
        self._answer, self._spare = (Message(self._server.parameters.payload.numel()) for _ in range(2))
        self._answered_at = 0.0
        self._news = threading.Event()
        self._lock = threading.Lock()

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        listener = threading.Thread(target=self._listen, name="answers", daemon=True)
        listener.start()
        step = 0
        while not self._over and step != self._work.last_step:
            cancelled = self._compute(step, start)
            end = time.monotonic()
            if not cancelled:
                self._server.push(step)
                end = time.monotonic()
                # wait, pull
                self._slot.doing(f"recv from the server, rank {self._server.server}, after step {step}", waiting=True)
            answered_at = self._read()
            start, step = answered_at if cancelled else max(answered_at, end), step + 1
        if not self._over:
            self._server.through()
            while not self._over:
                self._read()
        listener.join()
        self._end()

    def _sleep(self, until: float) -> bool:
        return wait_until(until, self._news)

    def _read(self) -> float:
        """Waits for an answer, and goes on from the newest, which may have come long ago; when that was here."""
        self._news.wait()
        with self._lock:
            self._news.clear()
            # Answers that came during a push are skipped, all but the newest.
            self._server.read(self._answer)
            self._adopt()
            return self._answered_at

    def _listen(self) -> None:
        while not self._answer.stop:
            answered_at = self._server.receive(self._spare)
            with self._lock:
                self._answer, self._spare = self._spare, self._answer
                self._answered_at = answered_at
                self._news.set()
