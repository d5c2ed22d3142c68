"""Launches three ranks that never end: two wait, and one does what the first argument says."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from distsim.runtime.launch import Launch, launched

# A shell that starts the tests in the background has them ignore Ctrl-C; what is tested here must not.
signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    little = str(Path(__file__).parent / "little.py")
    job = {"faults": {"1": sys.argv[1]}, "others": "wait"}
    with launched(Launch("endless", ["worker 0", "worker 1", "worker 2"], (little,), job, 120.0)):
        pass
