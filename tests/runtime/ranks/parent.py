"""Launches three ranks that never end: two wait, and one does what the first argument says.

With "emulate" as the second one, they live on the hosts of an emulated cluster.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from distsim.runtime.emulation.plan import Host, NetworkPlan
from distsim.runtime.launch.launcher import Launch, launched

# A shell that starts the tests in the background has them ignore Ctrl-C; what is tested here must not.
signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    little = str(Path(__file__).parent / "little.py")
    job = {"faults": {"1": sys.argv[1]}, "others": "wait"}
    plan = NetworkPlan(tuple(Host((rank,), 1e7, 1e7) for rank in range(3)), 0.0) if "emulate" in sys.argv else None
    roles = ["worker 0", "worker 1", "worker 2"]
    with launched(Launch("endless", roles, (little,), job, 120.0, network=plan)):
        pass
