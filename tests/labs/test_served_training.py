"""Trainings with a server: what a rule says must happen, and which faults a conversation finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from distsim.grading.conversation import CAME, OVER, Conversation
from distsim.grading.served_training import BOTH, STOP, WORKERS, ServedTraining
from distsim.policies.backup import Backup
from distsim.policies.stale_synchronous import StaleSynchronous
from distsim.testbed import Message, Run, Unwaited
from distsim.testbed.log import Busy, Collective, Note

IN_THE_MIDDLE = ((10, 5, 17), (20, 100), (26, 10, 9))
WORKER_1_FIRST = ((20, 100), (10, 5, 17), (26, 10, 9))


def backup(slots: Sequence[Sequence[int]] = IN_THE_MIDDLE) -> ServedTraining:
    return ServedTraining.drawn(
        np.random.default_rng(1), "a training", Backup(1).rule(3), 3, 2,
        size=4, options={"wait_for": 2}, numbered=False, columns=3, slots=slots,
    )  # fmt: skip


def held(training: ServedTraining) -> ServedTraining:
    """Workers 2 and 0 are released at once, when worker 1 comes."""
    slots = ((3, 9), (7, 9), (2, 9))
    return ServedTraining.drawn(
        np.random.default_rng(1), "a bound of 0", StaleSynchronous(0).rule(3), 3, 4,
        size=training.size, options={"staleness": 0}, numbered=True, slots=slots,
    )  # fmt: skip


def right(conversation: Conversation) -> Run:
    """A run in which all happens as it must, without waiting."""
    (training,) = conversation.trainings
    slot, server = conversation.slot_seconds, training.workers
    run = Run([{"turns": [{}]} for _ in range(server + 1)], [None] * (server + 1))
    for push in training.pushes:
        came, answered = push.slot * slot, push.answered * slot
        run.log.messages.append(Message(push.worker, server, 0, training.message_bytes, came, came, came))
        run.log.messages.append(Message(server, push.worker, 0, training.message_bytes, answered, answered, answered))
        run.log.notes.append(Note(server, CAME, {"source": push.worker, "vector": training.pushed(push)}, came))
        run.log.notes.append(Note(push.worker, CAME, {"source": server, "vector": training.answer(push)}, answered))
        earlier = [one.answered for one in training.of_worker(push.worker) if one.number < push.number]
        run.log.busy.append(Busy(push.worker, "gradient", max(earlier, default=0) * slot, came))
    for rank in range(server + 1):
        run.results[rank]["turns"][0]["room"] = training.end()
        run.log.notes.append(Note(rank, OVER, 0, training.slots * slot))
    run.results[-1]["turns"][0]["book"] = training.book()
    run.log.sort()
    return run


def test_a_rule_says_who_makes_each_update_and_what_is_answered() -> None:
    """Worker 2 is late when one of the two gradients of update 2 is there: it gets version 1, at once."""
    training = backup()
    assert training.book() == [[0, 1], [0, 2]]
    late = training.of_worker(2)[0]
    assert (late.slot, late.answered, late.head) == (26, 26, 1.0)
    last = [training.of_worker(worker)[-1] for worker in range(3)]
    assert [(push.answered, push.head) for push in last] == [(36, STOP), (120, STOP), (36, STOP)]
    assert np.array_equal(training.answer(late)[1:], training.versions[1])


def test_a_right_run_has_no_fault() -> None:
    for students in (("server",), (WORKERS,), BOTH):
        for training in (backup(), held(backup())):
            conversation = Conversation([training], students, in_turn=training.numbered)
            assert conversation.judged(right(conversation), "all well").share == 1.0


@pytest.mark.parametrize("students", [("server",), (WORKERS,), BOTH])
def test_every_run_is_judged_by_the_rules_of_the_lab(students: tuple[str, ...]) -> None:
    conversation = Conversation([backup()], students)
    for kind in ("collective", "one more", "too long", "between workers"):
        run = right(conversation)
        first = run.log.messages[1] if "server" in students else run.log.messages[0]
        if kind == "collective":
            run.log.collectives.append(Collective("barrier", (0, 1, 2, 3), 0, (0.0,) * 4, 0.0, 0.0))
        elif kind == "one more":
            run.log.messages.append(first)
        elif kind == "too long":
            run.log.messages[0] = replace(run.log.messages[0], num_bytes=1000)
        else:
            run.log.messages.append(replace(first, source=0, target=1))
        assert conversation.judged(run, "all well").share == 0.0, kind


def test_an_answer_that_is_late_and_one_that_is_early_are_faults() -> None:
    conversation = Conversation([backup()])
    for shift in (-1.1, 1.1):
        run = right(conversation)
        m = run.log.messages[1]
        moved = shift * conversation.bound_seconds
        run.log.messages[1] = replace(m, posted_seconds=m.posted_seconds + moved, ended_seconds=m.ended_seconds + moved)
        finding = conversation.judged(run, "all well")
        assert finding.share == 0.0
        assert "is answered at" in finding.observed


def test_a_part_of_an_update_in_an_answer_is_named() -> None:
    training = backup()
    conversation, late = Conversation([training]), training.of_worker(2)[0]
    run = right(conversation)
    part = training.versions[1] - training.learning_rate * training.pushed(training.used[1][0])[1:] / 2
    for number, note in enumerate(run.log.notes):
        if note.name == CAME and np.array_equal(note.value["vector"], training.answer(late)) and note.rank == 2:
            vector = np.concatenate([[1.0], part])
            run.log.notes[number] = replace(note, value={"source": 3, "vector": vector})
    finding = conversation.judged(run, "all well")
    assert finding.observed == "[1; the parameters of version 1 and a part of the next update]"
    assert finding.expected == "[1; the parameters of version 1]"


@pytest.mark.parametrize(("training", "turns"), [(backup(WORKER_1_FIRST), [1, 0]), (held(backup()), [0, 1, 2])])
def test_those_who_are_answered_at_once_are_answered_in_turn(training: ServedTraining, turns: list[int]) -> None:
    conversation = Conversation([training], in_turn=True)
    run = right(conversation)
    slot = next(one.answered for one in training.answers() if one.answered > one.slot)
    assert [push.worker for push in training.answers() if push.answered == slot] == turns
    for number, m in enumerate(run.log.messages):
        if m.source == 3 and m.posted_seconds == slot * conversation.slot_seconds:
            later = m.posted_seconds + (3 - turns.index(m.target)) * 1e-6
            run.log.messages[number] = replace(m, posted_seconds=later, ended_seconds=later)
    assert f"order of {training.order}" in conversation.judged(run, "all well").observed
    assert replace(conversation, in_turn=False).judged(run, "all well").share == 1.0


def test_a_student_waits_for_all_that_it_has_begun() -> None:
    conversation = Conversation([backup()])
    for rank, share in ((3, 0.0), (1, 1.0)):
        run = right(conversation)
        run.log.unwaited.append(Unwaited(rank, "isend", 0, "tasks.py:31 in serve"))
        assert conversation.judged(run, "all well").share == share


def test_numbers_beside_the_parameters_must_stay() -> None:
    conversation = Conversation([backup()])
    run = right(conversation)
    run.results[-1]["turns"][0]["room"][0, 0] += 1.0
    assert "beside the parameters" in conversation.judged(run, "all well").observed
