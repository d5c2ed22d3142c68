"""A run is late by real time if its ranks had the processor, or did nothing; on a busy machine it is waited for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from distsim.testbed.deadline import Computed, Deadline


def late_at(share: float, *, until: float = 1000.0) -> float:
    """When ranks that compute for a share of the time until then, and afterwards not at all, are late."""
    deadline = Deadline(20.0, began=0.0)
    for now in range(1, 200):
        deadline.computed(share * min(now, until), float(now))
        if deadline.passed(float(now)):
            return float(now)
    return 200.0


@pytest.mark.parametrize(
    ("share", "until", "seconds"),
    [
        (8.0, 1000.0, 21.0),  # all ranks loop
        (1.0, 1000.0, 21.0),
        (0.0, 1000.0, 21.0),  # all sleep
        (0.005, 1000.0, 21.0),  # one asks now and then
        (0.1, 1000.0, 50.0),  # late when they have had 5 seconds of processor time
        (0.1, 10.0, 21.0),
        (0.1, 30.0, 35.0),
        (0.02, 1000.0, 101.0),
    ],
)
def test_when_a_run_is_late(share: float, until: float, seconds: float) -> None:
    assert late_at(share, until=until) == pytest.approx(seconds, abs=1.0)


def test_processor_time_is_that_of_the_processes_and_stays_when_they_end() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        computed = Computed([child.pid, os.getpid()])
        own = Computed([os.getpid()])
        assert child.stdout is not None
        child.stdout.readline()
        while_it_lives = computed.seconds() - own.seconds()
        assert 0.25 <= while_it_lives <= 5.0
        child.communicate(b"\n")
    assert computed.seconds() - own.seconds() == pytest.approx(while_it_lives, abs=0.1)
