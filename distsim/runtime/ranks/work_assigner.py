"""FlexRR's plan in a real run: kept in one place, beside the server, and asked by notes who does which piece.

It says what the simulator's story says at the same points: begin, own, ask, hand over, done. A worker asks while the
piece lasts that it asks for: a piece begins when the one before has ended, so that asking takes no time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from distsim.policies.flexrr_plan import FlexRRPlan, Piece
from distsim.runtime.ranks.server import Duty, Server
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.channel import Way
from distsim.runtime.transport.host_messages import Note, NoteBox, Say


class Foreman:
    """Asks the plan for all workers. over: whether the last update has been made, after which nobody helps."""

    def __init__(self, plan: FlexRRPlan, rank: int, boxes: ForemansBoxes, over: Callable[[], bool]) -> None:
        self._plan = plan
        self._rank = rank
        self._boxes = boxes
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
            note = self._boxes.questions.get()
            worker = note.sender
            match note.say:
                case Say.BEGIN:
                    self._plan.begin(worker, note.step)
                    self._sums[worker] = 0
                    self._own(worker)
                    for helper in self._plan.helpers(worker):
                        if self._idle[helper] and not self._busy[helper]:
                            self._hand_over(helper)
                case Say.DONE:
                    self._plan.done(Piece(worker, note.step, note.item))
                    self._own(worker)
                case Say.IDLE:
                    self._plan.ask(worker)
                    self._idle[worker] = True
                    self._hand_over(worker)
                case Say.HELPED:
                    self._plan.done(Piece(note.worker, note.step, note.item))
                    self._busy[worker] = False
                    if self._idle[worker]:
                        self._hand_over(worker)
                case Say.BACK:
                    self._idle[worker] = False
                    self._helping[worker] = None
                    self._boxes.orders[worker].put(Note(Say.LEAVE, self._rank))
                case Say.GOODBYE:
                    self._boxes.orders[worker].put(Note(Say.GOODBYE, self._rank))
                    here -= 1

    def _own(self, worker: int) -> None:
        """The next piece of its own step, or how many sums it has to wait for."""
        piece = self._plan.own(worker)
        reply = Note(Say.ENOUGH, self._rank, item=self._sums[worker]) if piece is None else self._do(piece)
        self._boxes.replies[worker].put(reply)

    def _hand_over(self, helper: int) -> None:
        """A piece of another's step, or a pause."""
        piece = None if self._over() else self._plan.hand_over(helper)
        if piece is None:
            if self._helping[helper] is not None:
                self._helping[helper] = None
                self._boxes.orders[helper].put(Note(Say.ENOUGH, self._rank))
            return
        if self._helping[helper] != (piece.worker, piece.step):
            self._helping[helper] = piece.worker, piece.step
            self._sums[piece.worker] += 1
        self._busy[helper] = True
        self._boxes.orders[helper].put(self._do(piece))

    def _do(self, piece: Piece) -> Note:
        return Note(Say.PIECE, self._rank, piece.worker, piece.step, piece.item)


class ForemansBoxes:
    """What workers put in for the foreman, and it for each of them: about its own step, and about those of others."""

    def __init__(self, folder: Path, name: str, workers: Sequence[int]) -> None:
        self.questions = NoteBox(folder, f"{name}-questions")
        self.replies = {worker: NoteBox(folder, f"{name}-replies-{worker}") for worker in workers}
        self.orders = {worker: NoteBox(folder, f"{name}-orders-{worker}") for worker in workers}

    def close(self) -> None:
        """This side has done with all of them."""
        for box in (self.questions, *self.replies.values(), *self.orders.values()):
            box.close()


class ForemansServer(Server):
    """A server with the foreman beside it, in a thread of its own."""

    def __init__(
        self,
        plan: FlexRRPlan,
        boxes: ForemansBoxes,
        rank: int,
        duty: Duty,
        ways: Sequence[Way],
        recorder: Recorder,
        slot: StatusSlot,
    ) -> None:
        super().__init__(duty, ways, recorder, slot)
        self._boxes = boxes
        foreman = Foreman(plan, rank, boxes, over=lambda: self.over)
        self._foreman = threading.Thread(target=foreman.work, name="foreman", daemon=True)
        self._foreman.start()

    def run(self, start: float) -> None:
        """All updates, and the end."""
        super().run(start)
        self._foreman.join()
        self._boxes.close()
