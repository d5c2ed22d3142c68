"""The server and the workers against messages made by hand, in any order that a network can bring them in."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distsim import InputError
from distsim.policies import Backup, Decision, Rule, Synchronous
from distsim.runtime.ranks import server as server_module
from distsim.runtime.ranks import server_parameters as parameters_module
from distsim.runtime.ranks.server import Server, ServerTask
from distsim.runtime.ranks.server_parameters import LEARNING_RATE, Parameters
from distsim.runtime.ranks.worker import CancelledWorker, ServerProxy, Worker, WorkerTask
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder, load
from distsim.runtime.recording.tally import Tally
from distsim.runtime.transport import backend
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.inbox import Arrival
from distsim.runtime.transport.messages import Message, MessageKind, num_floats, pattern
from distsim.runtime.transport.senders import Sending

FLOATS = 7
Sent = list[tuple[int, int, bool]]  # worker, version, stop


class Script:
    """Workers that push as written, and say goodbye when they have been told to stop. (worker,): it is through."""

    def __init__(self, pushes: list[tuple[int, ...]], sent: Sent, workers: int) -> None:
        self.pushes = pushes
        self.sent = sent
        self.here = list(range(workers))
        self.messages = [Message(FLOATS) for _ in range(workers)]
        self.freed: list[int] = []
        self.last: Message | None = None

    def get(self) -> Arrival:
        if self.pushes:
            worker, *what = self.pushes.pop(0)
            message = self.messages[worker]
            message.payload[:] = pattern(FLOATS) * (worker + 1)
            if what:
                message.write(MessageKind.PUSH, step=what[0], version=what[1])
            else:
                message.write(MessageKind.THROUGH)
        else:
            worker = self.here.pop(0)
            assert any(to == worker and stop for to, _, stop in self.sent), f"worker {worker} was never told to stop"
            message = self.messages[worker]
            assert self.last is not None
            message.write(MessageKind.GOODBYE, checksum=self.last.checksum())
        return Arrival(worker, message, 0.0, time.monotonic())

    def free(self, worker: int) -> None:
        self.freed.append(worker)

    def send(self, worker: int, message: Message) -> Sending:
        self.last = message
        self.sent.append((worker, message.version, message.stop))
        sending = Sending(message)
        sending.gone()
        return sending

    def close(self) -> None:
        pass


@pytest.fixture
def slot(tmp_path: Path) -> StatusSlot:
    rank_status.create(tmp_path, 1)
    return StatusSlot(tmp_path, 0)


@pytest.fixture
def serve(
    monkeypatch: pytest.MonkeyPatch, slot: StatusSlot, tmp_path: Path
) -> Callable[..., tuple[Sent, dict[str, Any]]]:
    """Runs a server over scripted pushes (worker, step, version read); gives what it sent and what it recorded."""

    def run(
        rule: Rule, workers: int, updates: int, pushes: list[tuple[int, ...]], *, cancels: bool = False
    ) -> tuple[Sent, dict[str, Any]]:
        sent: Sent = []
        script = Script(pushes, sent, workers)
        recorder = Recorder()
        monkeypatch.setattr(server_module, "inbox", lambda *_arguments: script)
        monkeypatch.setattr(server_module, "Senders", lambda *_arguments: script)
        task = ServerTask(rule, workers, updates, FLOATS, "concurrent", cancels, progress=lambda _version: None)
        Server(task, [], recorder, slot).run(0.0)
        recorder.save(tmp_path, 0, 0)
        record = load(tmp_path, 0, 0)
        return sent, {
            name: [tuple(map(int, row[:4])) for row in record.rows(name)]
            for name in ("applied", "dropped", "cancelled")
        }

    return run


def test_synchronous_answers_all_when_all_have_come(serve: Callable[..., Any]) -> None:
    sent, rows = serve(Synchronous().rule(2), 2, 2, [(1, 0, 0), (0, 0, 0), (0, 1, 1), (1, 1, 1)])
    assert sent == [(0, 1, False), (1, 1, False), (0, 2, True), (1, 2, True)]
    assert rows["applied"] == [(1, 1, 0, 0), (1, 0, 0, 0), (2, 0, 1, 1), (2, 1, 1, 1)]


def test_a_late_gradient_is_dropped_and_its_worker_answered_at_once(serve: Callable[..., Any]) -> None:
    pushes = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 1), (2, 1, 1), (1, 1, 1)]
    sent, rows = serve(Backup(1).rule(3), 3, 2, pushes)
    assert sent[:3] == [(0, 1, False), (1, 1, False), (2, 1, False)]
    assert rows["dropped"] == [(2, 0, 0)]


def test_after_the_last_update_late_pushes_are_answered_with_stop_and_not_recorded(serve: Callable[..., Any]) -> None:
    sent, rows = serve(Backup(1).rule(3), 3, 1, [(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    assert sent == [(0, 1, True), (1, 1, True), (2, 1, True)]
    assert rows["dropped"] == []
    assert len(rows["applied"]) == 2


def test_a_push_of_a_cancelled_step_is_thrown_away_unseen_by_the_rule(serve: Callable[..., Any]) -> None:
    pushes = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (2, 1, 1), (0, 1, 1), (1, 1, 1)]
    sent, rows = serve(Backup(1, cancel=True).rule(3), 3, 2, pushes, cancels=True)
    assert sent == [(0, 1, False), (1, 1, False), (2, 1, False), (0, 2, True), (1, 2, True), (2, 2, True)]
    assert rows["applied"] == [(1, 0, 0, 0), (1, 1, 0, 0), (2, 2, 1, 1), (2, 0, 1, 1)]
    assert rows["cancelled"] == [(2, 0), (1, 1)]
    assert rows["dropped"] == []


def test_workers_that_wait_at_the_end_are_stopped(serve: Callable[..., Any]) -> None:
    class Holding:
        """Makes a version of every gradient and answers nobody."""

        version = 0

        def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - it never cares
            self.version += 1
            return Decision(self.version)

    sent, _ = serve(Holding(), 2, 2, [(0, 0, 0), (1, 0, 0)])
    assert sent == [(0, 2, True), (1, 2, True)]


class EverySecond:
    """Makes a version of every two gradients, and answers both workers."""

    def __init__(self) -> None:
        self.version = 0
        self.waiting: list[int] = []

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - it never cares
        self.waiting.append(worker)
        if len(self.waiting) < 2:
            return Decision()
        self.version += 1
        answered, self.waiting = self.waiting, []
        return Decision(self.version, answers=tuple((one, self.version) for one in answered))


def test_workers_that_are_through_are_stopped_at_the_end(serve: Callable[..., Any]) -> None:
    sent, rows = serve(Backup(1).rule(2), 2, 3, [(0, 0, 0), (0, 1, 1), (0,), (1, 0, 0), (1, 1, 2)])
    assert sent == [(0, 1, False), (0, 2, False), (1, 2, False), (1, 3, True), (0, 3, True)]
    assert rows["dropped"] == [(1, 0, 0)]


def test_a_run_in_which_all_are_through_is_over_with_fewer_updates(serve: Callable[..., Any]) -> None:
    sent, rows = serve(EverySecond(), 2, 4, [(0, 0, 0), (1, 0, 0), (0,), (1,)])
    assert sent == [(0, 1, False), (1, 1, False), (0, 1, True), (1, 1, True)]
    assert [row[0] for row in rows["applied"]] == [1, 1]


def test_a_version_without_a_gradient_leaves_the_parameters_as_they_are(serve: Callable[..., Any]) -> None:
    class Idle:
        """A version without a gradient."""

        def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - it never cares
            return Decision(1, applied=False, answers=((worker, 1),))

    sent, rows = serve(Idle(), 1, 1, [(0, 0, 0)])
    assert sent == [(0, 1, True)]
    assert rows["dropped"] == [(0, 0, 0)]


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision(2), "= 'made version 2': version 1 comes next"),
        (Decision(1, answers=((0, 0),)), "= 'answered worker 0 with version 0': the server holds 1"),
        (Decision(1, answers=((1, 1),)), "= 'answered worker 1': that worker waits for no answer"),
        (Decision(1, answers=((0, 1), (0, 1))), "= 'answered worker 0': that worker waits for no answer"),
    ],
)
def test_a_rule_that_asks_for_the_impossible_is_told_so(
    serve: Callable[..., Any], decision: Decision, words: str
) -> None:
    class Wrong:
        def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - always the same
            return decision

    with pytest.raises(InputError, match=f"worker 0's step 3, {words}"):
        serve(Wrong(), 2, 2, [(0, 3, 0)])


@pytest.mark.parametrize(
    ("pushes", "asked"),
    [([(0, 0, 0), (1, 4, 0)], "worker 0's step 0"), ([(0,), (1, 4, 0)], "worker 1's step 4")],
)
def test_a_rule_that_leaves_everybody_waiting_is_told_so_at_once(
    serve: Callable[..., Any], pushes: list[tuple[int, ...]], asked: str
) -> None:
    class Silent:
        def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - always the same
            return Decision()

    with pytest.raises(InputError, match=f"{asked}, = 'made 0 of 3 updates': every worker waits"):
        serve(Silent(), 2, 3, pushes)


def test_an_update_goes_one_step_down_the_mean_of_its_gradients(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[Parameters] = []
    true_verify = Parameters.verify
    monkeypatch.setattr(Parameters, "verify", lambda self: (verified.append(self), true_verify(self)))
    serve(Backup(1).rule(3), 3, 1, [(0, 0, 0), (2, 0, 0), (1, 0, 0)])
    expected = -LEARNING_RATE * (1 + 3) / 2 * pattern(FLOATS)
    assert verified[0].newest.payload.tolist() == expected.tolist()


@pytest.mark.parametrize(("workers", "updates", "most"), [(1, 50, 3), (2, 50, 4)])
def test_buffers_of_old_versions_are_used_again(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, workers: int, updates: int, most: int
) -> None:
    made = 0
    true_message = parameters_module.Message

    def counted(floats: int) -> Message:
        nonlocal made
        made += 1
        return true_message(floats)

    monkeypatch.setattr(parameters_module, "Message", counted)
    pushes = []
    for step in range(updates):
        pushes.append((0, step, step))
        if workers == 2 and step % 2 == 0:
            # Late by a version, each time: the answer before is still on its channel while two versions are made.
            pushes.append((1, step // 2, max(step - 1, 0)))
    if workers == 2:
        pushes.append((1, updates // 2, updates - 1))
    serve(Backup(workers - 1).rule(workers), workers, updates, pushes)
    assert made <= most


class Wire:
    """Stands for torch.distributed at a worker: `answers` come in, `sent` has gone out."""

    def __init__(self) -> None:
        self.answers: queue.Queue[tuple[int, bool]] = queue.Queue()
        self.sent: list[tuple[MessageKind, int, int]] = []
        self.during_push: Callable[[], None] = lambda: None

    def recv(self, tensor: Any, src: int, tag: int) -> None:
        assert (src, tag) == (2, 0)
        version, stop = self.answers.get(timeout=10)
        answer = Message(FLOATS)
        answer.write(MessageKind.ANSWER, version=version, stop=stop)
        tensor.copy_(answer.tensor)

    def send(self, tensor: Any, dst: int, tag: int) -> None:
        assert (dst, tag) == (2, 0)
        message = Message(0)
        message.tensor.copy_(tensor[: len(message.tensor)])
        self.sent.append((message.kind, message.step, message.version))
        if message.kind is MessageKind.PUSH:
            self.during_push()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    found = Wire()
    monkeypatch.setattr(backend, "dist", found)
    return found


def server_of(recorder: Recorder, slot: StatusSlot) -> list[ServerProxy]:
    return [ServerProxy(Channel(2, Tally()), Message(FLOATS), recorder, slot)]


def computes(recorder: Recorder) -> list[tuple[int, int, float]]:
    """(step, version read, seconds) of each compute."""
    return [(int(step), int(version), end - start) for step, version, start, end in recorder._rows["computes"]]


def test_a_worker_computes_pushes_and_goes_on_from_the_version_it_is_answered(wire: Wire, slot: StatusSlot) -> None:
    recorder = Recorder()
    wire.answers.put((2, False))
    wire.answers.put((3, True))
    work = WorkerTask(0, lambda step, _version: 0.001 * (1 + step))
    Worker(work, server_of(recorder, slot), recorder, slot).run(time.monotonic())
    assert wire.sent == [(MessageKind.PUSH, 0, 0), (MessageKind.PUSH, 1, 2), (MessageKind.GOODBYE, 0, 0)]
    assert [(step, version) for step, version, _ in computes(recorder)] == [(0, 0), (1, 2)]
    assert all(seconds >= 0.001 * (1 + step) for step, _, seconds in computes(recorder))


def test_an_answer_during_compute_ends_the_step_without_a_push(wire: Wire, slot: StatusSlot) -> None:
    recorder = Recorder()
    long = [30.0, 0.001]
    wire.during_push = lambda: wire.answers.put((2, True))
    wire.answers.put((1, False))
    work = WorkerTask(0, lambda step, _version: long[step])
    CancelledWorker(work, server_of(recorder, slot), recorder, slot).run(time.monotonic())
    assert wire.sent == [(MessageKind.PUSH, 1, 1), (MessageKind.GOODBYE, 0, 0)]
    (_, _, first), (_, _, second) = computes(recorder)
    assert first < 10.0
    assert second >= 0.001


def test_answers_during_a_push_let_it_through_and_only_the_newest_counts(wire: Wire, slot: StatusSlot) -> None:
    recorder = Recorder()

    def two_answers() -> None:
        last = len(wire.sent) > 1
        wire.answers.put((1 if not last else 3, False))
        wire.answers.put((2 if not last else 4, last))
        give_up = time.monotonic() + 5
        while len(recorder._rows["pulls"]) < 2 * len(wire.sent) and time.monotonic() < give_up:
            time.sleep(0.001)

    wire.during_push = two_answers
    work = WorkerTask(0, lambda _step, _version: 0.001)
    CancelledWorker(work, server_of(recorder, slot), recorder, slot).run(time.monotonic())
    assert wire.sent == [(MessageKind.PUSH, 0, 0), (MessageKind.PUSH, 1, 2), (MessageKind.GOODBYE, 0, 0)]
    assert [(step, version) for step, version, _ in computes(recorder)] == [(0, 0), (1, 2)]


@pytest.mark.parametrize(("num_bytes", "floats"), [(0.0, 1), (1.0, 1), (4.0, 1), (6.1, 2), (4 * 2.0**20, 2**20)])
def test_a_gradient_is_a_whole_number_of_floats(num_bytes: float, floats: int) -> None:
    assert num_floats(num_bytes) == floats


def test_the_checksum_is_of_the_numbers_and_not_of_the_header() -> None:
    one, other = Message(FLOATS), Message(FLOATS)
    one.write(MessageKind.ANSWER, version=1)
    other.write(MessageKind.ANSWER, version=2, stop=True)
    assert one.checksum() == other.checksum()
    other.payload[-1] = 1.0
    assert one.checksum() != other.checksum()
