"""Ranks over the switch: real processes, the real torch.distributed, a clock that does not depend on the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from distsim.cluster import Cluster
from distsim.testbed import Run, Testbed, patience

pytestmark = pytest.mark.real
LAB = Path(__file__).parent / "lab"


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    with Testbed(LAB) as bed:
        yield bed


def ring(testbed: Testbed, ranks: int, function: str = "ring_all_reduce", **options: Any) -> tuple[Run, np.ndarray]:
    random = np.random.default_rng(ranks)
    values = [random.normal(size=1200) for _ in range(ranks)]
    arguments = [
        {"values": given, "seconds": 0.1 * (rank + 1), "function": function} for rank, given in enumerate(values)
    ]
    return testbed.run("ring", arguments, **options), np.sum(values, axis=0)


def student(testbed: Testbed, function: str, ranks: int = 2, **options: Any) -> Run:
    return testbed.run("student", [{"function": function}] * ranks, **options)


@pytest.mark.parametrize("backend", ["testbed", "gloo"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_ring_written_by_hand_sums_on_every_rank(testbed: Testbed, ranks: int, backend: str) -> None:
    run, total = ring(testbed, ranks, backend=backend)
    assert run.failure is None
    for result in run.results:
        np.testing.assert_allclose(result["sum"], total)


def test_ranks_are_numbered_as_on_machines_of_two(testbed: Testbed) -> None:
    assert student(testbed, "numbers", ranks=3).results == [[0, 0, 3, 2], [1, 1, 3, 2], [2, 0, 3, 1]]


@pytest.mark.parametrize("backend", ["testbed", "gloo"])
@pytest.mark.parametrize("way", ["rendezvous", "store", "address", "patient"])
def test_ranks_that_start_in_their_own_way_meet(testbed: Testbed, way: str, backend: str) -> None:
    run = testbed.run("student", [{"function": "meet", "way": way}] * 3, start=False, backend=backend)
    assert run.failure is None
    assert run.results == [[0, 6], [1, 6], [2, 6]]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("impatient", "a timeout of 5 s"),
        ("another port", "TCPStore looks for the other processes at tcp://127.0.0.2:29618"),
        ("a tutorial's", "rendezvous looks for the other processes at tcp://localhost:29500"),
    ],
)
def test_ranks_that_cannot_meet_are_told_at_once(testbed: Testbed, way: str, words: str) -> None:
    run = testbed.run("student", [{"function": "meet", "way": way}] * 3, start=False)
    assert words in (run.failure or "")


def test_a_sleep_of_another_thread_takes_no_time_of_the_rank(testbed: Testbed) -> None:
    """As the thread of a progress bar sleeps."""
    run = student(testbed, "sums_beside_a_thread")
    assert run.failure is None
    for alone, beside in run.results:
        assert alone == pytest.approx(beside, rel=1e-9)
        assert alone >= 2.0


def test_strings_have_another_hash_on_each_rank_as_in_separate_processes(testbed: Testbed) -> None:
    by_rank = student(testbed, "hashes", ranks=3).results
    assert [len({*of_all}) for of_all in zip(*by_rank, strict=True)] == [3, 3, 3, 1, 1]
    assert by_rank[0][3:] == [hash(12), hash((1, 2.5))]


def test_the_log_has_every_byte_and_times_that_the_formula_gives(testbed: Testbed) -> None:
    links = Cluster.model_validate({"workers": 4, "bandwidth": "1 MB/s", "latency": "1 ms"})
    run, _ = ring(testbed, 4, cluster=links)
    assert [run.log.bytes_sent(rank) for rank in range(4)] == [6 * 300 * 8] * 4
    assert {(message.source, message.target) for message in run.log.messages} == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert run.seconds == pytest.approx(0.4 + 6 * (1e-3 + 2400 / 1e6), rel=1e-9)  # the last to start sets the pace
    assert run.log.notes_of(3, "before") == [3]


def test_receives_posted_ahead_and_overlapping_sends_take_no_longer(testbed: Testbed) -> None:
    """Two messages of one pair are on their way at once behind the slow NIC; they do not share its bandwidth."""
    links = Cluster.model_validate(
        {"workers": 4, "bandwidth": "1 MB/s", "latency": "1 ms", "nic": {1: {"up": "0.3 MB/s"}}}
    )
    for backend in ("testbed", "gloo"):
        run, total = ring(testbed, 4, "ring_ahead", cluster=links, backend=backend)
        assert run.failure is None
        for result in run.results:
            np.testing.assert_allclose(result["sum"], total)
        if backend == "testbed":
            in_turn, _ = ring(testbed, 4, cluster=links)
            assert run.seconds <= in_turn.seconds * (1 + 1e-9)


def test_a_callback_runs_when_its_operation_is_over_though_the_rank_computes(testbed: Testbed) -> None:
    run = student(testbed, "callback")
    ended = run.log.collectives[0].ended_seconds
    assert 0.0 < ended < 1.0
    assert run.results == [[ended, 1.0]] * 2
    assert [(busy.start_seconds, busy.end_seconds) for busy in run.log.busy] == [(0.0, 1.0)] * 2


def test_a_wait_ends_at_its_timeout(testbed: Testbed) -> None:
    assert student(testbed, "gives_up_waiting").results == [2.0, 0.0]


def test_a_send_that_nobody_waits_for_is_named_with_its_line(testbed: Testbed) -> None:
    run = student(testbed, "forgets_a_send")
    assert run.failure is None
    [told] = map(str, run.log.unwaited)
    assert (
        told
        == f"rank 0 never waits for its isend to rank 1 (tasks.py:{line_of('forgets_a_send') + 2} in forgets_a_send)"
    )
    assert ring(testbed, 2)[0].log.unwaited == []


def line_of(function: str) -> int:
    return LAB.joinpath("tasks.py").read_text().split(f"def {function}(")[0].count("\n") + 1


def test_two_runs_leave_the_same_log(testbed: Testbed) -> None:
    first, second = ring(testbed, 4)[0], ring(testbed, 4)[0]
    assert (first.log, first.seconds) == (second.log, second.seconds)


def test_every_collective_gives_what_gloo_gives(testbed: Testbed) -> None:
    ours, gloo = (testbed.run("every_collective", [{}] * 3, backend=name) for name in ("testbed", "gloo"))
    assert (ours.failure, gloo.failure) == (None, None)
    for mine, theirs in zip(ours.results, gloo.results, strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in mine.items():
            np.testing.assert_equal(value, theirs[name], err_msg=name)


@pytest.mark.parametrize("backend", ["testbed", "gloo"])
def test_a_message_arrives_though_its_sender_has_returned(testbed: Testbed, backend: str) -> None:
    run = testbed.run("sends_and_goes", [{"keeps": True}] * 2, backend=backend)
    assert run.failure is None
    assert run.results == [[7.0], [7.0]]
    assert run.output == ["gone", ""]


def test_whoever_waits_for_a_rank_that_has_gone_is_told(testbed: Testbed) -> None:
    run = testbed.run("sends_and_goes", [{"keeps": False}] * 2, backend="gloo", deadline_seconds=60.0)
    assert "Connection closed by peer" in str(run.failures[1])


def test_sleep_takes_virtual_time_alone(testbed: Testbed) -> None:
    before = time.perf_counter()
    run = student(testbed, "sleeps")
    assert run.results == [3600.0, 3600.0]
    assert run.seconds == 3600.0
    assert time.perf_counter() - before < 60.0


def test_a_deadlock_is_found_at_once_with_the_lines_where_ranks_stand(testbed: Testbed) -> None:
    before = time.perf_counter()
    run = student(testbed, "circle", 3, deadline_seconds=60.0)
    assert "deadlock" in str(run.failure)
    line = LAB.joinpath("tasks.py").read_text().splitlines().index("def circle() -> None:") + 2
    assert f"waits in send to rank 2 (tasks.py:{line} in circle)" in str(run.failures[1])
    assert time.perf_counter() - before < 30.0


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("wrong", "ValueError: seven is no even number (tasks.py:"),
        ("gives_up", "sys.exit('enough') was called (tasks.py:"),
        ("leaves", "before its work was done"),
        ("forges", "RuntimeError: and fails (tasks.py:"),
        ("floods", "printed more than"),
        ("returns_an_object", "a object cannot pass"),
        ("goes_on", "went on after an error of the network: all_reduce: ranks gave tensors of different shapes"),
        ("absent", "has no attribute 'absent'"),
        ("rank_below", "there is no rank -1 in a group of 2, whose ranks begin at 0 (tasks.py:"),
        ("rank_as_text", "is of type str (tasks.py:"),
    ],
)
def test_what_goes_wrong_on_a_rank_is_said(testbed: Testbed, function: str, told: str) -> None:
    run = student(testbed, function)
    assert told in str(run.failure)
    assert run.results[run.first or 0] is None


@pytest.mark.parametrize(("row", "early"), [(0, True), (0, False), (1, True)])
def test_a_tensor_must_not_change_before_what_sends_it_is_over(testbed: Testbed, row: int, early: bool) -> None:
    run = testbed.run("student", [{"function": "changes_what_it_sends", "row": row, "early": early}] * 2)
    if row == 0 and early:
        assert "a tensor was changed while it was sent: change it only after `wait` (tasks.py:" in str(run.failure)
    else:
        assert (run.failure, run.results) == (None, [3.0 * row, 3.0])


def test_a_tensor_must_not_change_before_its_reduction_is_over(testbed: Testbed) -> None:
    assert "a tensor was changed while it was sent" in str(student(testbed, "changes_what_it_reduces").failure)


def test_a_message_without_bytes_tells_nothing(testbed: Testbed) -> None:
    run = student(testbed, "shape_as_message")
    assert run.failure is None
    assert run.results[1] == [0]
    assert [message.num_bytes for message in run.log.messages] == [0]


def test_an_endless_loop_ends_at_the_deadline_and_later_runs_are_not_waited_for_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How long runs take here, an earlier one has shown."""
    monkeypatch.setattr(patience, "FEWEST_SECONDS", 0.0)
    with Testbed(LAB) as bed:  # of its own, since later runs have less time
        assert student(bed, "leaves").failure
        run = student(bed, "forever", deadline_seconds=5.0)
        assert run.late
        assert "not finished after 5 s, the deadline (tasks.py:" in str(run.failure)
        assert " in forever)" in str(run.failure)
        monkeypatch.setattr(patience, "TIMES", 100.0)
        assert ring(bed, 2)[0].failure is None, "the next run is fine"
        monkeypatch.setattr(patience, "TIMES", 0.01)
        run = student(bed, "forever", deadline_seconds=250.0)
        assert run.late
        assert "not finished after 250 s" not in str(run.failure)


def test_nothing_is_left_open_after_many_runs() -> None:
    descriptors, processes = len(os.listdir("/proc/self/fd")), set(psutil.Process().children(recursive=True))
    with Testbed(LAB) as bed:
        for _ in range(10):
            assert student(bed, "sleeps").failure is None
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert set(psutil.Process().children(recursive=True)) <= processes


def test_what_a_rank_prints_is_kept_in_part(testbed: Testbed) -> None:
    run = student(testbed, "forges")
    assert '{"do": "result", "value": 1}' in "".join(run.output)
    assert run.results == [None, None]


def test_an_optimizer_imports_nothing_in_a_rank_and_no_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Testbed(LAB) as bed:
        run = bed.run("optimizer", [{}])
    assert run.failure is None
    assert run.results[0]["parameter"] == [-0.5]
    assert run.results[0]["imported"] < 10  # hundreds, which take seconds, where the host has not imported them
    assert not list(tmp_path.iterdir())


def test_modules_that_the_files_name_are_imported_once_for_all_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ranks.py").write_text(
        "import sys\n\n\ndef here(tasks):  # colours, and nothing of the kind\n    return 'colorsys' in sys.modules\n"
    )
    for needs, imported in (({}, False), ({b"nothing": "no_such_module", b"colours": "colorsys"}, True)):
        monkeypatch.setattr("distsim.testbed.slow_imports.NEEDS", needs)
        with Testbed(tmp_path) as bed:
            run = bed.run("here", [{}] * 2, student=False)
        assert run.failure is None
        assert run.results == [imported, imported]


def test_a_rank_collects_its_own_garbage_but_does_not_visit_what_was_imported_before(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(
        "import gc\n\n\ndef here(tasks):\n    return {'on': gc.isenabled(), 'left alone': gc.get_freeze_count()}\n"
    )
    with Testbed(tmp_path) as bed:
        (found,) = bed.run("here", [{}], student=False).results
    assert found["on"]
    assert found["left alone"] > 100_000, "the objects of torch alone are more"


@pytest.mark.parametrize("trusted", [False, True])
def test_each_rank_has_its_own_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    (tmp_path / "ranks.py").write_text(
        "import os\nimport tempfile\n\n\ndef here(tasks):\n    name = tempfile.mkstemp()[1]\n"
        "    return {'made': os.path.basename(name), 'all': os.listdir(os.path.dirname(name))}\n"
    )
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setenv("TMPDIR", str(outside))
    with Testbed(tmp_path, trusted=trusted) as bed:
        run = bed.run("here", [{}] * 2, student=False)
    assert run.failure is None
    assert [sorted(found["all"]) for found in run.results] == [sorted([found["made"], "work"]) for found in run.results]
    assert not list(outside.iterdir())
