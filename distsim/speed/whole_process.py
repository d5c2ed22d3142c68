"""What a simulation costs in a fresh process: processor time and peak memory, Python and its imports included."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from distsim.metrics import summary
from distsim.scenario import Scenario
from distsim.simulation import simulate

STATUS = Path("/proc/self/status")  # Linux
CHILD = "from distsim.speed.whole_process import tell; tell()"


@dataclass(frozen=True)
class Spent:
    """What a process has taken from its start. seconds: of processor time; peak_bytes: of resident memory."""

    seconds: float
    peak_bytes: float


def spent(scenario: Scenario) -> Spent:
    """What a process takes that starts, simulates `scenario`, and sums the run up, as `distsim simulate` does."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=scenario.dumps(), capture_output=True, text=True, check=True
    )
    seconds, peak_bytes = map(float, done.stdout.split())
    return Spent(seconds, peak_bytes)


def tell() -> None:
    """The child process: reads a scenario from standard input, writes what it has taken to standard output."""
    trace = simulate(Scenario.loads(sys.stdin.read(), source="standard input"))
    assert summary(trace).updates
    print(time.process_time(), own_peak_bytes())


def own_peak_bytes() -> float:
    """The peak memory of this process in bytes.

    Taken from /proc if possible, because the peak that getrusage reports for a child process includes the memory that
    its parent held at the start.
    """
    if STATUS.exists():
        line = next(line for line in STATUS.read_text("utf-8").splitlines() if line.startswith("VmHWM:"))
        return 1024.0 * int(line.split()[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
