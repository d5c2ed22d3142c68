"""Two machines in one, as in pair.py, under one rendezvous. The second machine dies in the middle of the run.

    python -m tests.runtime.ranks.dying_machine FOLDER (killed|cut)

killed: its processes end, and its kernel closes their connections. cut: its network goes first, so that the first
machine hears nothing more. It prints a line of JSON, or ends with 77 and the reason where it may make no namespaces.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from distsim.errors import InputError
from distsim.runtime.emulation import namespaces
from distsim.runtime.emulation.iproute import Iproute
from tests.runtime.ranks.pair import ADDRESSES, NO_RIGHT, joined

PORT = 29500
DIES_AFTER = 12  # steps
PATIENCE_SECONDS = 120.0
RENDEZVOUS = "last_call_timeout=1,keep_alive_interval=1"


def torchrun(number: int, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3",
        "--rdzv-backend=c10d", f"--rdzv-endpoint={ADDRESSES[0]}:{PORT}", "--rdzv-id=elastic",
        f"--rdzv-conf=is_host={number == 0},{RENDEZVOUS}", f"--local-addr={ADDRESSES[number]}",
        "--monitor-interval=0.1", str(Path(__file__).with_name("elastic.py")), str(folder),
    ]  # fmt: skip


def steps(folder: Path) -> list[dict[str, float]]:
    file = folder / "steps"
    return [json.loads(line) for line in file.read_text("ascii").splitlines()] if file.exists() else []


def main(folder: Path, how: str) -> int:
    try:
        pair = joined()
    except InputError as error:
        print(error)
        return NO_RIGHT
    tools = Iproute.found()
    left = folder / "left"  # by torchrun, which is killed
    left.mkdir()
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "nic", "OMP_NUM_THREADS": "1", "TMPDIR": str(left)}
    machines = []
    for number, namespace in enumerate(pair):
        namespaces.enter(namespace)
        with (folder / f"machine{number}.log").open("wb") as log:
            machines.append(subprocess.Popen(torchrun(number, folder), env=environment, stdout=log, stderr=log))
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while len(steps(folder)) < DIES_AFTER:
            if time.monotonic() > deadline or machines[0].poll() is not None:
                return 1
            time.sleep(0.01)
        died = time.monotonic()
        if how == "cut":
            tools.ip("link set nic down")  # this process is in the second namespace
        kill(machines[1].pid)
        code = machines[0].wait(deadline - time.monotonic())
    finally:
        for machine in machines:
            kill(machine.pid)
            machine.wait()
    print(json.dumps({"code": code, "died": died, "steps": steps(folder)}))
    return code


def kill(agent: int) -> None:
    """Ends torchrun and its ranks, which are in groups of their own."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(agent)
        for one in [process, *process.children(recursive=True)]:
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
