"""A worker with servers: compute -> push -> wait -> pull, until all answers say stop.

compute: the worker computes forward and backward of a model, if there is one, and sleeps the drawn time. push: it sends
the gradient to the server. wait, pull: the answer brings the parameters of a newer version. With several servers, the
worker exchanges with all of them at once, and goes on when all have answered. At the end it says goodbye, with a
checksum of its parameters.

Under a rule that cancels, an answer may come before the push. So a thread always has a receive posted, and an answer
during compute ends the step. A push that has begun is completed, and the server throws it away.
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
    """A worker's task.

    seconds: of compute, by (step, version read). last_step: how many steps; None: until the server stops it. training:
    the model; None: the gradient is the same pattern in all steps. first_step: above 0 where the worker goes on after
    a failure, with the parameters that the server sends.
    """

    worker: int
    seconds: Callable[[int, int], float]
    last_step: int | None = None
    training: Training | None = None
    first_step: int = 0


class ServerProxy:
    """One server, as a worker sees it: the gradient for the server, and the parameters of its last answer.

    gradient: the buffer to push from, for the server's share of the parameters.
    """

    def __init__(self, channel: Channel, gradient: Message, recorder: Recorder, slot: StatusSlot) -> None:
        self.channel = channel
        self.server = channel.rank
        self.gradient = gradient
        self.parameters = Message(gradient.payload.numel())
        self.version = 0  # the version that the worker read last
        self.stop = False  # whether that version was the last
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
        """Sends the gradient to the server."""
        self._slot.doing(f"push of step {step} to the server, rank {self.server}", waiting=True)
        self.gradient.write(MessageKind.PUSH, step=step, version=self.version)
        start = time.monotonic()
        self.channel.send(self.gradient)
        self._pushed((self.server, step, self.version, start, time.monotonic()))

    def pull(self) -> None:
        """Receives the parameters."""
        self.receive(self.parameters)
        self.read(self.parameters)

    def receive(self, answer: Message) -> float:
        """Receives the next answer into this buffer; returns when it had arrived."""
        self.channel.receive(answer)
        now = time.monotonic()
        self._pulled((self.server, answer.version, now))
        return now

    def read(self, answer: Message) -> None:
        """Makes this answer the one that the worker goes on from."""
        self.parameters, self.version, self.stop = answer, answer.version, answer.stop

    def through(self) -> None:
        """Tells the server that no push will follow."""
        self._slot.doing(f"recv of the end from the server, rank {self.server}", waiting=True)
        self.gradient.write(MessageKind.THROUGH)
        self.channel.send(self.gradient)

    def goodbye(self) -> None:
        """Sends the last message."""
        self._slot.doing("goodbye", waiting=True)
        self.gradient.write(MessageKind.GOODBYE, checksum=self.parameters.checksum())
        self.channel.send(self.gradient)


class Worker:
    """The role of one worker under a rule that never cancels."""

    def __init__(self, work: WorkerTask, servers: Sequence[ServerProxy], recorder: Recorder, slot: StatusSlot) -> None:
        self._work = work
        self._servers = servers
        self._slot = slot
        self._computed = recorder.table("computes")
        self._pool = ThreadPoolExecutor(len(servers), "exchange") if len(servers) > 1 else None
        self._model: WorkerModel | None = None
        if work.training is not None:
            work.training.record_in(recorder)
            self._model = WorkerModel(work.training, [server.gradient for server in servers])
        else:
            for server in servers:
                torch.mul(pattern(server.gradient.payload.numel()), work.worker + 1, out=server.gradient.payload)
        recorder.facts["num_bytes"] = servers[0].gradient.num_bytes

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
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
        """Receives the parameters of the last checkpoint from the servers; returns when they had arrived."""
        for server in self._servers:
            self._slot.doing(f"recv of the checkpoint from the server, rank {server.server}", waiting=True)
            server.pull()
        return time.monotonic()

    @property
    def _over(self) -> bool:
        return all(server.stop for server in self._servers)

    def _compute(self, step: int, start: float) -> bool:
        """Computes a step; returns whether it was cancelled."""
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
        """Push, wait, pull, with all servers at once; returns when the worker can go on."""
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
        """Gives the model the parameters that have come."""
        if self._model is not None:
            self._model.adopt([server.parameters.payload for server in self._servers])

    def _await_end(self) -> None:
        """Waits until the run is over, after all steps are done."""
        if not self._over:
            for server in self._servers:
                server.through()
                while not server.stop:
                    server.pull()

    def _end(self) -> None:
        """Says goodbye to all servers."""
        for server in self._servers:
            server.goodbye()
        if self._pool is not None:
            self._pool.shutdown()


class CancelledWorker(Worker):
    """The role of one worker under a rule that cancels. Such a rule has one server."""

    def __init__(self, work: WorkerTask, servers: Sequence[ServerProxy], recorder: Recorder, slot: StatusSlot) -> None:
        super().__init__(work, servers, recorder, slot)
        (self._server,) = servers
        self._answer, self._spare = (Message(self._server.parameters.payload.numel()) for _ in range(2))
        self._answered_at = 0.0
        self._news = threading.Event()
        self._lock = threading.Lock()

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
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
        """Waits for an answer and goes on from the newest; returns when that answer had arrived."""
        self._news.wait()
        with self._lock:
            self._news.clear()
            # Of the answers that came during a push, only the newest counts.
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
