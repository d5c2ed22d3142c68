"""The work assigner of a FlexRR run: it keeps the plan, beside the server, and tells each worker which piece to do.

It says what the simulator's story says at the same points: begin, own, ask, hand over, done. A worker asks while the
piece lasts that it asks for: a piece begins when the one before has ended, so that asking takes no time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from distsim.policies.flexrr_plan import FlexRRPlan, Piece
from distsim.runtime.ranks.server import Server, ServerTask
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.host_messages import HostMessage, HostMessageKind, Mailbox


class WorkAssigner:
    """Asks the plan for all workers. over: whether the last update has been made, after which nobody helps."""

    def __init__(self, plan: FlexRRPlan, rank: int, mailboxes: Mailboxes, over: Callable[[], bool]) -> None:
        self._plan = plan
        self._rank = rank
        self._mailboxes = mailboxes
        self._over = over
        workers = plan.workers
        self._idle = [False] * workers  # who has nothing of its own to do
        self._busy = [False] * workers  # who is doing another's piece
        self._helping: list[tuple[int, int] | None] = [None] * workers  # (worker, step) of the pieces in a row
        self._sums = [0] * workers  # by worker: how many sums for its step helpers have begun

    def work(self) -> None:
        """Until all workers have said goodbye."""
        here = self._plan.workers
        while here:
            message = self._mailboxes.questions.get()
            worker = message.sender
            match message.kind:
                case HostMessageKind.BEGIN:
                    self._plan.begin(worker, message.step)
                    self._sums[worker] = 0
                    self._own(worker)
                    for helper in self._plan.helpers(worker):
                        if self._idle[helper] and not self._busy[helper]:
                            self._hand_over(helper)
                case HostMessageKind.DONE:
                    self._plan.done(Piece(worker, message.step, message.item))
                    self._own(worker)
                case HostMessageKind.IDLE:
                    self._plan.ask(worker)
                    self._idle[worker] = True
                    self._hand_over(worker)
                case HostMessageKind.HELPED:
                    self._plan.done(Piece(message.worker, message.step, message.item))
                    self._busy[worker] = False
                    if self._idle[worker]:
                        self._hand_over(worker)
                case HostMessageKind.BACK:
                    self._idle[worker] = False
                    self._helping[worker] = None
                    self._mailboxes.orders[worker].put(HostMessage(HostMessageKind.LEAVE, self._rank))
                case HostMessageKind.GOODBYE:
                    self._mailboxes.orders[worker].put(HostMessage(HostMessageKind.GOODBYE, self._rank))
                    here -= 1

    def _own(self, worker: int) -> None:
        """The next piece of its own step, or how many sums it has to wait for."""
        piece = self._plan.own(worker)
        reply = (
            HostMessage(HostMessageKind.ENOUGH, self._rank, item=self._sums[worker])
            if piece is None
            else self._do(piece)
        )
        self._mailboxes.replies[worker].put(reply)

    def _hand_over(self, helper: int) -> None:
        """A piece of another's step, or a pause."""
        piece = None if self._over() else self._plan.hand_over(helper)
        if piece is None:
            if self._helping[helper] is not None:
                self._helping[helper] = None
                self._mailboxes.orders[helper].put(HostMessage(HostMessageKind.ENOUGH, self._rank))
            return
        if self._helping[helper] != (piece.worker, piece.step):
            self._helping[helper] = piece.worker, piece.step
            self._sums[piece.worker] += 1
        self._busy[helper] = True
        self._mailboxes.orders[helper].put(self._do(piece))

    def _do(self, piece: Piece) -> HostMessage:
        return HostMessage(HostMessageKind.PIECE, self._rank, piece.worker, piece.step, piece.item)


class Mailboxes:
    """The assigner's mailbox, and two of each worker: replies about its own step, and orders to help others."""

    def __init__(self, folder: Path, name: str, workers: Sequence[int]) -> None:
        self.questions = Mailbox(folder, f"{name}-questions")
        self.replies = {worker: Mailbox(folder, f"{name}-replies-{worker}") for worker in workers}
        self.orders = {worker: Mailbox(folder, f"{name}-orders-{worker}") for worker in workers}

    def close(self) -> None:
        """This side has done with all of them."""
        for mailbox in (self.questions, *self.replies.values(), *self.orders.values()):
            mailbox.close()


class AssigningServer(Server):
    """A server with the work assigner beside it, in a thread of its own."""

    def __init__(
        self,
        plan: FlexRRPlan,
        mailboxes: Mailboxes,
        rank: int,
        task: ServerTask,
        channels: Sequence[Channel],
        recorder: Recorder,
        slot: StatusSlot,
    ) -> None:
        super().__init__(task, channels, recorder, slot)
        self._mailboxes = mailboxes
        assigner = WorkAssigner(plan, rank, mailboxes, over=lambda: self.over)
        self._assigner_thread = threading.Thread(target=assigner.work, name="assigner", daemon=True)
        self._assigner_thread.start()

    def run(self, start: float) -> None:
        """All updates, and the end."""
        super().run(start)
        self._assigner_thread.join()
        self._mailboxes.close()
