"""The most memory a simulation takes, in a fresh process."""

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
    """What the process does: a scenario on standard input, its peak on standard output."""
    trace = simulate(Scenario.loads(sys.stdin.read(), source="standard input"))
    assert len(trace.updates)
    print(own_peak_bytes())


def own_peak_bytes() -> float:
    """The peak of this process.

    Where /proc tells it, from there: what getrusage tells of a started process counts what its parent held when it
    started it.
    """
    if STATUS.exists():
        line = next(line for line in STATUS.read_text("utf-8").splitlines() if line.startswith("VmHWM:"))
        return 1024.0 * int(line.split()[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
