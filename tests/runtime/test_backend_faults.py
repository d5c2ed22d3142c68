"""Faults of real ranks: whatever happens, the error names rank and line, and carries what was recorded until then."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distsim import InputError, RunError, Scenario
from distsim.figures import timeline
from distsim.runtime.measure import measure, measure_all
from distsim.trace import SpanKind, Trace, violations

pytestmark = pytest.mark.real
more = pytest.mark.more
FAULTY = str(Path(__file__).parent / "ranks" / "faulty.py")
DEADLINES = (30.0, 120.0)  # a busy machine may still be starting the ranks when the first has passed
LATE_SECONDS = 5.0  # what the end of a run may take beyond its deadline


def scenario(kind: str, steps: int = 6) -> Scenario:
    return Scenario.of(
        {
            "name": "faulty",
            "steps": steps,
            "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "10 ms"},
            "workload": {"gradient": "64 KiB", "batch": 1},
            "policy": {"kind": "synchronous"},
            "communication": {"kind": kind},
        }
    )


def failed(monkeypatch: pytest.MonkeyPatch, kind: str, **fault: Any) -> tuple[str, Trace]:
    """The message of a run with this fault, and what had been recorded."""
    monkeypatch.setenv("DISTSIM_TEST_FAULT", json.dumps(fault))
    for deadline in DEADLINES:
        started = time.monotonic()
        with pytest.raises(RunError) as caught:
            measure_all([scenario(kind)], deadline_seconds=deadline, entry=(FAULTY,))
        assert time.monotonic() - started < deadline + LATE_SECONDS
        trace = caught.value.trace
        if trace is not None and len(trace.spans):
            break
    assert trace is not None, str(caught.value)
    assert trace.metadata["complete"] is False
    assert violations(trace) == []
    return str(caught.value), trace


def computed(trace: Trace, worker: int) -> list[int]:
    spans = trace.spans.of_kind(SpanKind.COMPUTE)
    return spans.where(spans.worker == worker).step.tolist()


@pytest.mark.parametrize(
    "fault", ["kill", pytest.param("exit", marks=pytest.mark.thorough), pytest.param("raise", marks=more)]
)
@pytest.mark.parametrize(
    ("kind", "where", "call"), [("ring", "peers", 4), pytest.param("parameter_server", "worker", 7, marks=more)]
)
def test_what_was_recorded_until_a_rank_went_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: str, where: str, call: int, fault: str
) -> None:
    # A ring's sleeps are its steps; with a server the warm-up sleeps three times before.
    message, trace = failed(monkeypatch, kind, rank=1, where=where, call=call, fault=fault)
    assert "rank 1 (worker 1)" in message
    assert "during compute of step 3" in message
    assert computed(trace, 1) == [0, 1, 2]
    assert computed(trace, 0) in ([0, 1, 2], [0, 1, 2, 3])
    assert trace.updates.version.tolist() == [1, 2, 3]
    assert len(timeline(trace).figure.data)


@more
def test_a_deadline_leaves_what_each_rank_was_doing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for deadline in (9.0, *DEADLINES):
        monkeypatch.setenv("DISTSIM_TEST_FAULT", json.dumps({"rank": 1, "where": "peers", "call": 3, "fault": "print"}))
        with pytest.raises(RunError) as caught:
            measure_all([scenario("ring")], deadline_seconds=deadline, entry=(FAULTY,))
        if (trace := caught.value.trace) is not None and len(trace.spans):
            break
    assert trace is not None
    assert re.search(
        r"rank 1 \(worker 1\) has spent [\d.]+ s in compute of step 2 at faulty\.py:\d+", str(caught.value)
    )
    (stuck,) = trace.spans.of_kind(SpanKind.LOST).label.tolist()
    assert stuck == "compute of step 2"
    waiting = trace.spans.of_kind(SpanKind.WAIT)
    assert list(zip(waiting.worker.tolist(), waiting.label.tolist(), strict=True)) == [(0, "all_reduce of step 2")]
    trace.save(tmp_path / "until_then.json")
    assert Trace.load(tmp_path / "until_then.json") == trace


@pytest.mark.thorough
def test_mismatched_collectives_end_with_the_ranks_named(monkeypatch: pytest.MonkeyPatch) -> None:
    message, trace = failed(monkeypatch, "ring", rank=1, where="collective", call=6)
    assert re.search(r"rank \d \(worker \d\) (has waited|raised|was ended by)", message), message
    assert re.search(r"all_reduce of step \d", message)
    assert re.search(r"\w+\.py:\d+", message)
    assert len(trace.updates) <= 3


@more
def test_a_message_longer_than_expected_names_who_received_it(monkeypatch: pytest.MonkeyPatch) -> None:
    message, trace = failed(monkeypatch, "parameter_server", rank=1, where="length", call=7)
    assert re.search(r"rank 2 \(server 2\) (raised \w+|was ended by SIG\w+)", message), message
    assert re.search(r"(server|inbox|channel)\.py:\d+", message)
    assert len(trace.updates) <= 4


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 2 MB, on which the runs of this test have their folders."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting a small disk needs root")
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    yield disk
    subprocess.run(["umount", disk], check=True)


@more
def test_a_full_disk_is_named_and_nothing_stays_on_it(monkeypatch: pytest.MonkeyPatch, small_disk: Path) -> None:
    message, trace = failed(monkeypatch, "ring", rank=1, where="peers", call=4, fault="fill")
    assert re.search(
        r"rank \d \(worker \d\) raised OSError at recorder\.py:\d+, during the writing of its record", message
    )
    assert message.endswith("No space left on device")
    assert computed(trace, 0) == list(range(6))
    assert list(small_disk.iterdir()) == []


@more
def test_a_full_disk_before_the_run_is_bad_input(monkeypatch: pytest.MonkeyPatch, small_disk: Path) -> None:
    monkeypatch.setenv("DISTSIM_FOLDER", str(small_disk))
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)) == 4096 and filler.stat().st_size < 2 * 2**20:
            pass
    with pytest.raises(InputError, match="No space left on device"):
        measure(scenario("ring"))
    assert list(small_disk.iterdir()) == [filler]


@more
def test_a_port_in_use_is_nobodys_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        assert len(measure(scenario("ring")).updates) == 6
        assert os.environ["MASTER_PORT"] == str(taken.getsockname()[1])
