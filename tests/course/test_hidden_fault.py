"""Each fault slows one worker of chapter 03, and can be told from the other fault in the trace."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

import distsim
from distsim.course.hidden_fault import CAUSES, hidden_fault
from distsim.course.reading_network import DISK, NETWORK, slow_disk
from distsim.metrics.worker_time import worker_seconds
from distsim.runtime.machine import usable_cores
from distsim.trace import SpanKind, Trace

TWO = distsim.example("synchronous_ring").replacing(
    {"cluster.workers": 2, "steps": 15, "workload": {"model": NETWORK}, "compute": {"mean": "0 s"}}
)
SLOWED = 1.2  # a worker with half a core, or with a slow disk, takes twice as long, if nothing slows down the other


@pytest.mark.alone
@pytest.mark.more
@pytest.mark.skipif(usable_cores() < 2, reason="both workers would share the one core")
@pytest.mark.parametrize("cause", CAUSES)
def test_the_worker_is_slow_by_this_cause_and_the_other_one_waits(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "choice", lambda _: cause)
    quiet = distsim.measure(TWO, pinned=True)
    seen: list[Any] = []
    for _ in range(3):
        with hidden_fault(workers=2, seconds=distsim.summary(quiet).step_seconds.mean) as tell:
            trace = distsim.measure(TWO, pinned=True)
        slow = int(tell().split()[1])
        forward, backward = (_medians(trace, kind) for kind in (SpanKind.FORWARD, SpanKind.BACKWARD))
        seen.append((slow, forward.tolist(), backward.tolist()))
        longer = backward[slow] > SLOWED * backward[1 - slow]
        if forward[slow] > SLOWED * forward[1 - slow] and longer == ("core" in cause):
            parts = worker_seconds(trace)
            waits = parts["waiting"] + parts["communication"]
            assert waits[1 - slow] > waits[slow]
            return
    pytest.fail(f"the slow worker, and the seconds of forward and backward of both: {seen}")


def test_both_workers_and_both_causes_come() -> None:
    found: set[str] = set()
    for _ in range(60):
        with hidden_fault(workers=2, seconds=0.01) as tell:
            found.add(tell())
        if len(found) == 2 * len(CAUSES):
            break
    assert found == {f"Worker {worker} was slow: {cause}." for worker in range(2) for cause in CAUSES}


def test_a_slower_disk_within_a_block_leaves_the_outer_one_in_place() -> None:
    variable = DISK.format(0)
    with slow_disk(rank=0, seconds=0.1):
        outer = os.environ[variable]
        with slow_disk(rank=0, seconds=0.2):
            assert os.environ[variable] != outer
        assert os.environ[variable] == outer
    assert variable not in os.environ


def _medians(trace: Trace, kind: SpanKind) -> np.ndarray:
    """Of each worker."""
    spans = trace.spans.of_kind(kind)
    seconds = spans.end_seconds - spans.start_seconds
    return np.array([np.median(seconds[spans.worker == worker]) for worker in range(2)])
