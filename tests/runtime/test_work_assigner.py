"""The work assigner: when a FlexRR worker with new parameters helps on, and when it begins its next step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from distsim.policies import FlexRR
from distsim.runtime.ranks.work_assigner import Mailboxes, WorkAssigner
from distsim.runtime.transport.host_messages import HostMessage, HostMessageKind

ASSIGNER, FAST, SLOW = 2, 0, 1
ITEMS = 4


@pytest.fixture
def mailboxes(tmp_path: Path) -> Iterator[Mailboxes]:
    boxes = Mailboxes(tmp_path, "test", [FAST, SLOW])
    yield boxes
    boxes.close()


def orders(mailboxes: Mailboxes, staleness: int, answered_after: int, over_after: int = ITEMS) -> list[tuple[str, int]]:
    """The orders to a worker that is done with step 0, of which the other worker has begun one item, and their items.

    answered_after: the number of items that the worker does for the other before it has new parameters. over_after:
    the same, before the run is over.
    """
    helped: list[HostMessage] = []
    plan = FlexRR(staleness=staleness, items=ITEMS, group=1).plan(workers=2)
    assigner = WorkAssigner(plan, ASSIGNER, mailboxes, over=lambda: len(helped) >= over_after)

    def tell(kind: HostMessageKind, worker: int, whose: int = 0, item: int = 0) -> None:
        mailboxes.questions.put(HostMessage(kind, worker, whose, 0, item))

    thread = threading.Thread(target=assigner.work, daemon=True)
    thread.start()
    for worker in (FAST, SLOW):
        tell(HostMessageKind.BEGIN, worker, worker)
        assert mailboxes.replies[worker].get().kind is HostMessageKind.PIECE
    for item in range(ITEMS):
        tell(HostMessageKind.DONE, FAST, FAST, item)
        mailboxes.replies[FAST].get()
    tell(HostMessageKind.IDLE, FAST)
    found = []
    while True:
        order = mailboxes.orders[FAST].get()
        found.append((order.kind.name, order.item))
        if order.kind is not HostMessageKind.PIECE:
            break
        if len(helped) == answered_after:
            tell(HostMessageKind.ANSWERED, FAST)
        helped.append(order)
        tell(HostMessageKind.HELPED, FAST, order.worker, order.item)
    for worker in (FAST, SLOW):
        tell(HostMessageKind.GOODBYE, worker)
        assert mailboxes.orders[worker].get().kind is HostMessageKind.GOODBYE
    thread.join()
    return found


def test_a_worker_with_new_parameters_helps_on_if_its_next_step_would_end_at_the_bound(mailboxes: Mailboxes) -> None:
    """It begins its next step when the slow worker has no item left to begin."""
    assert orders(mailboxes, staleness=1, answered_after=0) == [("PIECE", 3), ("PIECE", 2), ("PIECE", 1), ("LEAVE", 0)]


def test_a_worker_that_may_run_ahead_begins_its_next_step_after_its_piece(mailboxes: Mailboxes) -> None:
    assert orders(mailboxes, staleness=2, answered_after=0) == [("PIECE", 3), ("LEAVE", 0)]
    assert orders(mailboxes, staleness=2, answered_after=1) == [("PIECE", 3), ("PIECE", 2), ("LEAVE", 0)]


def test_nobody_helps_when_the_run_is_over(mailboxes: Mailboxes) -> None:
    assert orders(mailboxes, 1, answered_after=0, over_after=2) == [("PIECE", 3), ("PIECE", 2), ("LEAVE", 0)]
