"""The work assigner of a FlexRR run: it keeps the plan, beside the server, and tells each worker which piece to do.

It calls the plan at the same points as the simulator does: begin, own, ask, hand over, done. A piece begins when the
previous piece has ended. So the time in which a worker asks for a piece is part of that piece's time.
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
    """Asks the plan for all workers. over: whether the last update has been made; then no worker helps."""

    def __init__(self, plan: FlexRRPlan, rank: int, mailboxes: Mailboxes, over: Callable[[], bool]) -> None:
        self._plan = plan
        self._rank = rank
        self._mailboxes = mailboxes
        self._over = over
        workers = plan.workers
        self._idle = [False] * workers  # whether the worker has no work of its own
        self._answered = [False] * workers  # whether it has new parameters and has not begun its next step
        self._busy = [False] * workers  # whether the worker is doing a piece of another worker
        self._helping: list[tuple[int, int] | None] = [None] * workers  # whose step its pieces in a row are of
        self._sums = [0] * workers  # how many sums helpers have begun for the worker's step

    def work(self) -> None:
        """Answers until all workers have said goodbye."""
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
                    self._hand_over(worker)
                case HostMessageKind.ANSWERED:
                    self._idle[worker] = False
                    self._answered[worker] = True
                    if not self._busy[worker]:
                        self._hand_over(worker)
                case HostMessageKind.GOODBYE:
                    self._mailboxes.orders[worker].put(HostMessage(HostMessageKind.GOODBYE, self._rank))
                    here -= 1

    def _own(self, worker: int) -> None:
        """Replies with the next piece of the worker's own step, or with the number of sums to wait for."""
        piece = self._plan.own(worker)
        reply = (
            HostMessage(HostMessageKind.ENOUGH, self._rank, item=self._sums[worker])
            if piece is None
            else self._do(piece)
        )
        self._mailboxes.replies[worker].put(reply)

    def _hand_over(self, helper: int) -> None:
        """Orders a piece of another worker's step, a pause, or, with new parameters, the next step."""
        answered = self._answered[helper]
        piece = None if self._over() else self._plan.hand_over(helper, answered=answered)
        if piece is None:
            if answered or self._helping[helper] is not None:
                kind = HostMessageKind.LEAVE if answered else HostMessageKind.ENOUGH
                self._mailboxes.orders[helper].put(HostMessage(kind, self._rank))
            self._helping[helper] = None
            self._answered[helper] = False
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
        """Closes this process's ends of all mailboxes."""
        for mailbox in (self.questions, *self.replies.values(), *self.orders.values()):
            mailbox.close()


class AssigningServer(Server):
    """A server that runs the work assigner in a thread of its own."""

    def __init__(
        self, plan: FlexRRPlan, mailboxes: Mailboxes, rank: int, task: ServerTask, channels: Sequence[Channel],
        recorder: Recorder, slot: StatusSlot,
    ) -> None:  # fmt: skip
        super().__init__(task, channels, recorder, slot)
        self._mailboxes = mailboxes
        assigner = WorkAssigner(plan, rank, mailboxes, over=lambda: self.over)
        self._assigner_thread = threading.Thread(target=assigner.work, name="assigner", daemon=True)
        self._assigner_thread.start()

    def run(self, start: float) -> None:
        """Makes all updates, and stops the workers."""
        super().run(start)
        self._assigner_thread.join()
        self._mailboxes.close()
