"""A real run on several machines: here two namespaces joined by a veth pair, or two nodes that meet on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from distsim import Scenario
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import State
from distsim.trace import Trace
from distsim.trace.invariants import violations

pytestmark = [pytest.mark.real, pytest.mark.alone, pytest.mark.more]
PAIR = Path(__file__).parent / "ranks" / "pair.py"
NO_RIGHT = 77
PATIENCE_SECONDS = 150
STEPS = 5


def scenario(communication: dict[str, Any], policy: str = "synchronous", **changes: Any) -> Scenario:
    table = {
        "name": "spread",
        "steps": STEPS,
        "seed": 3,
        "cluster": {"workers": 3, "bandwidth": "1 Gbit/s", "latency": "0 s"},
        "compute": {"distribution": "lognormal", "mean": "20 ms", "cv": 0.3},
        "workload": {"gradient": "64 KiB", "batch": 1},
        "policy": {"kind": policy},
        "communication": communication,
    }
    return Scenario.of(table | changes)


RING = {"kind": "ring", "implementation": "schedule"}  # whose transfers are in the trace
SERVER = {"kind": "parameter_server"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def command(folder: Path, node: int, endpoint: str, *options: str, nodes: int = 2) -> list[str]:
    """What is typed on a machine."""
    where = ["--nnodes", str(nodes), "--node-rank", str(node), "--rdzv-endpoint", endpoint]
    trace = ["--trace", str(folder / "measured.npz"), "--json"]
    return [sys.executable, "-m", "distsim", "measure", str(folder / "s.toml"), *trace, *where, *options]


@contextmanager
def started(commands: list[list[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(words, **pipes) for words in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def ends(commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each."""
    with started(commands) as processes:
        told = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
        return [(process.returncode, *texts) for process, texts in zip(processes, told, strict=True)]


def check_complete(trace: Trace, asked: Scenario, machines: list[list[int]]) -> None:
    """All steps of all workers, all updates, and no message that arrives before it was sent."""
    workers = asked.cluster.workers
    assert trace.metadata["machines"] == machines
    assert len(trace.updates) == asked.steps
    assert sorted(zip(trace.contributions.worker.tolist(), trace.contributions.step.tolist(), strict=True)) == [
        (worker, step) for worker in range(workers) for step in range(asked.steps)
    ]
    per_step = 2 * workers if asked.servers else 2 * workers * (workers - 1)
    assert len(trace.transfers) >= per_step * asked.steps - workers  # the last answers only end the run
    assert violations(trace) == []
    assert trace.metadata["clock"]["source"].endswith("by ping-pong with it")
    assert 0.0 < trace.metadata["clock"]["uncertainty_seconds"] < 0.05
    assert 0.0 < trace.updates.time_seconds[-1] < 30.0


@pytest.mark.iproute2
@pytest.mark.parametrize(
    ("communication", "machines"), [(RING, [[0, 1], [2]]), (SERVER, [[0, 1], [2, 3]])], ids=["ring", "server"]
)
def test_two_machines_run_one_scenario(
    tmp_path: Path, communication: dict[str, Any], machines: list[list[int]]
) -> None:
    asked = scenario(communication)
    (tmp_path / "s.toml").write_text(asked.dumps())
    before = os.listdir("/sys/class/net")
    both = [json.dumps(command(tmp_path, node, "{address}:29500")) for node in (0, 1)]
    done = subprocess.run(
        [sys.executable, str(PAIR), *both], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode == NO_RIGHT:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (json.loads(json.loads(line)["out"]) for line in done.stdout.splitlines())
    assert second == {"node": 1, "nodes": 2, "ranks": machines[1]}
    assert first["updates"] == STEPS
    check_complete(Trace.load(tmp_path / "measured.npz"), asked, machines)
    assert os.listdir("/sys/class/net") == before


@pytest.mark.parametrize("ahead", [pytest.param(0, marks=pytest.mark.thorough), 1])
def test_clocks_that_differ_become_one(tmp_path: Path, ahead: int) -> None:
    """One machine's clock is 1000 s ahead."""
    in_future = ["unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child"]
    try:
        subprocess.run([*in_future, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to make time namespaces (root, Linux 5.6, util-linux)")
    asked = scenario(SERVER | {"colocated": True})
    (tmp_path / "s.toml").write_text(asked.dumps())
    endpoint = f"127.0.0.1:{free_port()}"
    commands = [command(tmp_path, node, endpoint, "--deadline", "90") for node in (0, 1)]
    commands[ahead] = [*in_future, *commands[ahead]]
    for code, _, errors in ends(commands):
        assert code == 0, errors
    trace = Trace.load(tmp_path / "measured.npz")
    assert trace.metadata["machines"] == [[0, 1, 3], [2]]
    assert trace.metadata["clock"]["start_spread_seconds"] < 1.0
    assert -1.0 < trace.spans.start_seconds.min() < trace.spans.end_seconds.max() < 30.0
    assert violations(trace) == []


def running(folder: Path, ranks: int) -> bool:
    """Whether `ranks` ranks have finished a step, on all machines together."""
    slots = [slot for file in folder.glob("distsim-run-*/status") for slot in rank_status.read(file.parent)]
    return sum(slot.state is State.RUNNING and slot.steps_done > 0 for slot in slots) >= ranks


@pytest.mark.parametrize("dies", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_machine_that_dies_ends_the_other_with_a_message(
    tmp_path: Path, processes_left: Callable[[], int], dies: int
) -> None:
    (tmp_path / "s.toml").write_text(scenario({"kind": "ring"}, steps=2000).dumps())
    endpoint = f"127.0.0.1:{free_port()}"
    with started([command(tmp_path, node, endpoint) for node in (0, 1)]) as processes:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not running(tmp_path, 3) and time.monotonic() < give_up:
            time.sleep(0.1)
        processes[dies].send_signal(signal.SIGKILL)
        other = processes[1 - dies]
        _, errors = other.communicate(timeout=20)
    assert other.returncode == 3, errors
    assert re.search("another node ended first, and says why; here (rank|torchrun lost)", errors)  # whichever is first
    give_up = time.monotonic() + 10
    while processes_left() and time.monotonic() < give_up:
        time.sleep(0.1)


def test_a_rank_that_dies_is_named_on_its_own_machine(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(scenario({"kind": "ring"}, steps=2000).dumps())
    endpoint = f"127.0.0.1:{free_port()}"
    with started([command(tmp_path, node, endpoint) for node in (0, 1)]) as (first, second):
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not running(tmp_path, 3) and time.monotonic() < give_up:
            time.sleep(0.1)
        slots = [slot for file in tmp_path.glob("distsim-run-*/status") for slot in rank_status.read(file.parent)]
        (victim,) = (slot.pid for slot in slots if slot.rank == 2 and slot.state is State.RUNNING)
        os.kill(victim, signal.SIGKILL)
        told = [process.communicate(timeout=20)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (3, 3)
    assert re.search("another node ended first, and says why; here (rank|torchrun lost)", told[0])
    assert "rank 2 (worker 2) was ended by SIGKILL" in told[1]


@pytest.mark.thorough
def test_a_machine_that_does_not_come_is_told_at_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(scenario({"kind": "ring"}).dumps())
    for node in (0, 1):
        endpoint = f"127.0.0.1:{free_port()}"
        ((code, _, errors),) = ends([command(tmp_path, node, endpoint, "--deadline", "9")])
        assert code == 3
        assert f"Node {node} has waited at {endpoint}, and not all 2 nodes have come" in errors


def test_machines_with_different_scenarios_are_refused_on_both(tmp_path: Path) -> None:
    endpoint, commands = f"127.0.0.1:{free_port()}", []
    for node in (0, 1):
        folder = tmp_path / str(node)
        folder.mkdir()
        (folder / "s.toml").write_text(scenario({"kind": "ring"}, seed=node).dumps())
        commands.append(command(folder, node, endpoint))
    for code, out, errors in ends(commands):
        assert (code, out) == (2, "")
        assert "the nodes were started with different scenarios" in errors


SRUN = """#!/bin/bash
# Stands in for Slurm's: every task gets its number.
[ "$1" = --kill-on-bad-exit=1 ] && shift
for node in $(seq 0 $((SLURM_NNODES - 1))); do SLURM_NODEID=$node "$@" & tasks+=($!); done
for task in "${tasks[@]}"; do wait "$task" || code=$?; done
exit ${code:-0}
"""
SCONTROL = '#!/bin/bash\n[ "$*" = "show hostnames machine[1-2]" ] && echo 127.0.0.1 && echo 127.0.0.2\n'


def batch_job(tmp_path: Path, distsim: str) -> subprocess.CompletedProcess[str]:
    """The Slurm script on two machines. distsim: the shell command that stands for `distsim`."""
    script = str(resources.files("distsim.examples").joinpath("slurm.sh"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "srun": SRUN,
        "scontrol": SCONTROL,
        "distsim": f"#!/bin/bash\n{distsim}\n",
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "SLURM_NNODES": "2",
        "SLURM_JOB_ID": str(free_port()),
        "SLURM_JOB_NODELIST": "machine[1-2]",
    }
    subprocess.run(["bash", "-n", script], check=True)
    return subprocess.run(
        ["bash", script, "s.toml", "measured.npz"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip


def test_the_slurm_script_asks_nothing_and_numbers_its_nodes(tmp_path: Path) -> None:
    done = batch_job(tmp_path, 'echo "$@"')
    words = [line.split() for line in done.stdout.splitlines()]
    assert len(words) == 2, done.stderr
    assert all(line[:3] == ["measure", "s.toml", "--yes"] for line in words)
    assert sorted(line[line.index("--node-rank") + 1] for line in words) == ["0", "1"]


def test_the_slurm_script_starts_a_run_on_each_machine(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(scenario({"kind": "ring"}).dumps())
    done = batch_job(tmp_path, f'exec {sys.executable} -m distsim "$@"')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "node 1 of 2: rank 2 has ended well; node 0 has the trace" in done.stdout
    assert len(Trace.load(tmp_path / "measured.npz").updates) == STEPS
