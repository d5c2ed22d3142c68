"""A FlexRR worker: it does its steps piece by piece, and pieces of other workers' steps while it waits.

compute      the worker does its pieces from the front, as the work assigner says, and waits for the helpers' sums.
exchange     push, wait and pull as every worker. From the push on, a thread helps other workers:
    hand over    the work assigner says which piece to do.
    compute      at the speed of the worker's own latest step. A piece that has begun is done to its end. With new
                 parameters the worker goes on when the assigner has no piece for it.
    send         the sum of the pieces done in a row for one worker travels to that worker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from distsim.policies import FlexRR
from distsim.runtime.ranks.flexrr_sums import IncomingSums, OutgoingSums, weight
from distsim.runtime.ranks.work_assigner import Mailboxes
from distsim.runtime.ranks.worker import ServerProxy, Worker, WorkerTask
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.host_messages import HostMessage, HostMessageKind
from distsim.runtime.transport.messages import pattern


class FlexRRWorker(Worker):
    """The role of one worker under FlexRR, whose only server runs the work assigner too."""

    def __init__(
        self, policy: FlexRR, workers: int, mailboxes: Mailboxes, work: WorkerTask, servers: Sequence[ServerProxy],
        recorder: Recorder, slot: StatusSlot,
    ) -> None:  # fmt: skip
        super().__init__(work, servers, recorder, slot)
        (self._server,) = servers
        gradient, plan = self._server.gradient, policy.plan(workers)
        floats = gradient.payload.numel()
        self._items = policy.items
        self._pattern = pattern(floats)
        self._incoming = IncomingSums(plan.helpers(work.worker), gradient, policy.items, recorder)
        self._outgoing = OutgoingSums(plan.helped(work.worker), floats, recorder)
        self._did = recorder.table("pieces")
        self._step = self._read = 0
        self._piece_seconds = 0.0
        self._mailboxes = mailboxes
        self._left = threading.Event()
        self._helped_until = 0.0
        self._helper = threading.Thread(target=self._help, name="helping", daemon=True)
        self._helper.start()

    def _compute(self, step: int, start: float) -> bool:
        """Does the pieces of a step that no helper takes, and waits for the sums of the others."""
        self._step = step
        self._piece_seconds = self._work.seconds(step, self._read) / self._items
        self._incoming.begin(step)
        # compute
        reply = self._ask(HostMessageKind.BEGIN)
        while reply.kind is HostMessageKind.PIECE:
            item = reply.item
            self._slot.doing(f"compute of item {item} of step {step}")
            self._incoming.add(self._pattern, (self._work.worker + 1) * weight(item), 1)
            start = self._do(self._work.worker, step, item, start)
            reply = self._ask(HostMessageKind.DONE, item)
        # wait
        self._slot.doing(f"wait for {reply.item} sums for step {step}", waiting=True)
        self._incoming.wait(reply.item)
        return False

    def _exchange(self, step: int) -> float:
        """Push, wait, pull. The worker helps meanwhile, and before it goes on, those that would make it wait."""
        self._tell(HostMessageKind.IDLE)
        ready = self._back(super()._exchange(step))
        self._read = self._server.version
        return ready

    def _await_end(self) -> None:
        if not self._over:
            self._tell(HostMessageKind.IDLE)
            super()._await_end()
            self._back(time.monotonic())

    def _end(self) -> None:
        self._tell(HostMessageKind.GOODBYE)
        self._helper.join()
        self._outgoing.end()
        self._incoming.join()
        self._mailboxes.close()
        super()._end()

    def _help(self) -> None:
        """Does pieces of other workers as ordered. A piece begins when the previous piece has ended."""
        until: float | None = None
        while True:
            order = self._mailboxes.orders[self._work.worker].get()
            now = time.monotonic()
            # send
            if self._outgoing.row_is_over((order.worker, order.step) if order.kind is HostMessageKind.PIECE else None):
                self._outgoing.send(self._step)
            # compute
            if order.kind is HostMessageKind.PIECE:
                piece = order.worker, order.step, order.item
                self._outgoing.add(*piece)
                until = self._helped_until = self._do(*piece, now if until is None else until)
                self._tell(HostMessageKind.HELPED, *piece)
                continue
            until = None
            if order.kind is HostMessageKind.LEAVE:
                self._left.set()
            elif order.kind is HostMessageKind.GOODBYE:
                return

    def _do(self, worker: int, step: int, item: int, start: float) -> float:
        """Does a piece of any worker in an equal share of the time of its own latest step; returns its end."""
        sleep_until(start + self._piece_seconds)
        end = time.monotonic()
        self._did((worker, step, item, self._step, self._read, start, end))
        return end

    def _back(self, ready: float) -> float:
        """Helps on as ordered. Returns when the worker can go on: at `ready`, or when its last piece has ended."""
        self._slot.doing("the end of the pieces for others", waiting=True)
        self._tell(HostMessageKind.ANSWERED)
        self._left.wait()
        self._left.clear()
        return max(ready, self._helped_until)

    def _ask(self, kind: HostMessageKind, item: int = 0) -> HostMessage:
        """Tells the work assigner about this worker's own step, and returns the reply."""
        self._tell(kind, self._work.worker, self._step, item)
        return self._mailboxes.replies[self._work.worker].get()

    def _tell(self, kind: HostMessageKind, worker: int = 0, step: int = 0, item: int = 0) -> None:
        self._mailboxes.questions.put(HostMessage(kind, self._work.worker, worker, step, item))
