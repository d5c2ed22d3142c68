"""The peak memory of a simulation in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from distsim.scenario import Scenario
from distsim.simulation import simulate

STATUS = Path("/proc/self/status")  # Linux
CHILD = "from distsim.speed.memory import tell; tell()"


def peak_bytes(scenario: Scenario) -> float:
    """Peak resident bytes of a process that starts, simulates `scenario`, and ends."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=scenario.dumps(), capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def tell() -> None:
    """The child process: reads a scenario from standard input, writes its peak to standard output."""
    trace = simulate(Scenario.loads(sys.stdin.read(), source="standard input"))
    assert len(trace.updates)
    print(own_peak_bytes())


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
