"""Finds out before a run whether this machine can emulate a cluster: builds the cluster and drops it at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from distsim.runtime.emulation import coordination
from distsim.runtime.emulation.iproute import KERNEL_CURE, refusal
from distsim.runtime.emulation.plan import NetworkPlan

# In a process of its own, as torchrun's agent does it: a process that builds a network stays in it.
BUILD = (
    "import pathlib, sys; from distsim.runtime.emulation import coordination; "
    "coordination.fulfil(pathlib.Path(sys.argv[1]))"
)


def check(plan: NetworkPlan) -> None:
    """Raises InputError where the machine, or this process's rights, do not allow `plan`. Takes about a second."""
    with tempfile.TemporaryDirectory(prefix="distsim-trial-") as name:
        coordination.place(Path(name), plan)
        done = subprocess.run(
            [sys.executable, "-c", BUILD, name],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        if refused := coordination.refused(Path(name)):
            raise refused
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise refusal(f"failed when it was tried: {said[0]}", KERNEL_CURE)
