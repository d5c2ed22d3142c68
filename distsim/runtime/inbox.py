"""How the server receives: several pushes at once, or one after the other in the order of arrival.

Both hand out one message after the other, and both receive nothing more from a worker until `free` has been
called for its last message, because its buffer is in use until then.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

import torch.distributed as dist

from distsim.runtime.messages import Kind, Message


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that has arrived in full. posted_seconds: when the server was ready for it; seconds: when it was in."""

    worker: int
    message: Message
    posted_seconds: float
    seconds: float


class Inbox(Protocol):
    """Where the messages of all workers come in."""

    def get(self) -> Arrival:
        """The next message, when there is one."""
        ...

    def free(self, worker: int) -> None:
        """The worker's last message has been dealt with."""
        ...


class ConcurrentInbox:
    """One thread per worker with a receive always posted: pushes share the way in."""

    def __init__(self, workers: int, floats: int) -> None:
        self._arrivals: SimpleQueue[Arrival | BaseException] = SimpleQueue()
        self._freed = [threading.Semaphore(0) for _ in range(workers)]
        for worker in range(workers):
            threading.Thread(
                target=self._receive, args=(worker, Message(floats)), name=f"from worker {worker}", daemon=True
            ).start()

    def get(self) -> Arrival:
        """The next message; an error of a receiving thread is raised here."""
        arrival = self._arrivals.get()
        if isinstance(arrival, BaseException):
            raise arrival
        return arrival

    def free(self, worker: int) -> None:
        """The thread may receive the next one."""
        self._freed[worker].release()

    def _receive(self, worker: int, message: Message) -> None:
        try:
            while True:
                posted = time.monotonic()
                dist.recv(message.tensor, src=worker)
                self._arrivals.put(Arrival(worker, message, posted, time.monotonic()))
                if message.kind is Kind.GOODBYE:
                    return
                self._freed[worker].acquire()
        except BaseException as error:  # noqa: BLE001 - the server's own thread raises it
            self._arrivals.put(error)


class FifoInbox:
    """A plain receive from anybody: gloo's sends are rendezvous, so the others wait for their turn."""

    def __init__(self, floats: int) -> None:
        self._message = Message(floats)

    def get(self) -> Arrival:
        """Receives the next message."""
        posted = time.monotonic()
        worker = dist.recv(self._message.tensor)
        return Arrival(worker, self._message, posted, time.monotonic())

    def free(self, worker: int) -> None:
        """Nothing to do: the next receive is posted by `get`."""


def inbox(receive: str, workers: int, floats: int) -> Inbox:
    """The inbox for a scenario's `receive`."""
    return ConcurrentInbox(workers, floats) if receive == "concurrent" else FifoInbox(floats)
