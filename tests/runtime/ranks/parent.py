"""Launches three ranks that never end: two wait, and one does what the first argument says."""

from __future__ import annotations

import sys
from pathlib import Path

from distsim.runtime.launch import Launch, launched

if __name__ == "__main__":
    little = str(Path(__file__).parent / "little.py")
    job = {"faults": {"1": sys.argv[1]}, "others": "wait"}
    with launched(Launch("endless", ["worker 0", "worker 1", "worker 2"], (little,), job, 120.0)):
        pass
