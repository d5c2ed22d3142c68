"""Runs a script as the ranks of a run through torchrun, watches them, and leaves no process and no file behind.

prepare -> start -> watch -> (diagnose) -> end
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from distsim.errors import InputError, RunError
from distsim.files import write_text
from distsim.progress import Phase, Report
from distsim.runtime.emulation import coordination
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.launch.diagnosis import Evidence
from distsim.runtime.launch.node import RANKS_VARIABLE, Node
from distsim.runtime.launch.owned_process import Process, forked
from distsim.runtime.launch.rank_context import FOLDER_VARIABLE, JOB_FILE, STACK_SIGNAL, failure_file, stacks_file
from distsim.runtime.launch.rank_output import Output, output_pipe
from distsim.runtime.launch.termination import termination_raises
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import IMPORTING, State, Status

if TYPE_CHECKING:
    from distsim.trace import Trace

LOOK_SECONDS = 0.05
FAILURE_GRACE_SECONDS = 3.0  # for torchrun to end the other ranks, once a rank has reported a failure
STACKS_GRACE_SECONDS = 1.0  # for the ranks to write their stacks
INTERRUPTS = (KeyboardInterrupt, SystemExit)  # Ctrl-C, and SIGTERM; they carry a `trace` as RunError does


class Stage(NamedTuple):
    """Some steps of a run. what: in a few words, such as "step" or "measuring this machine's links, step"."""

    what: str
    steps: int


@dataclass(frozen=True)
class Launch:
    """A run to start.

    what: its name in messages. roles: the role of each rank, such as "worker 2"; a process runs for each role.
    entry: a script, or "-m" and a module. job: the task of all ranks, as JSON.
    stages: what the ranks do one after the other, with the steps of each, for progress. expected_seconds: how long all
    of it should take. progress: called with the phase of the run at every look. An error in it ends the run.
    network: the emulated cluster to run on. None: this machine's own network.
    node, here: in a run on several machines, which machine this is, and which ranks run here.
    restarts: how often all ranks are started again after a failure. imports: the modules that all ranks use.
    salvage: makes a trace of the folder of a run that failed or was interrupted. The error carries the trace.
    """

    what: str
    roles: Sequence[str]
    entry: Sequence[str]
    job: dict[str, Any]
    deadline_seconds: float
    stages: Sequence[Stage] = ()
    expected_seconds: float | None = None
    progress: Report | None = None
    network: NetworkPlan | None = None
    node: Node | None = None
    here: Sequence[int] = ()
    restarts: int = 0
    imports: Sequence[str] = ()
    salvage: Callable[[Path], Trace | None] | None = None

    @property
    def own(self) -> Sequence[int]:
        """The ranks that this process watches."""
        return self.here if self.node else range(len(self.roles))

    def tell(self, doing: str, done: int = 0) -> None:
        """Reports what the run does now, after so many steps."""
        if self.progress is not None:
            steps = sum(stage.steps for stage in self.stages)
            self.progress(Phase(doing, done, steps, self.expected_seconds))


@contextmanager
def launched(launch: Launch) -> Iterator[Path]:
    """Runs `launch`; yields the folder with the records of its ranks.

    Raises RunError where a rank failed or the deadline passed: it names the rank, its activity and its place.
    Raises InputError where this machine cannot emulate the network. In every case, also when interrupted or terminated,
    all processes of the run end, its emulated network goes, and the folder is removed.
    """
    with termination_raises(), _folder() as folder:
        _prepare(folder, launch)
        names = ["agent", *map(str, launch.own)]
        with Output(folder, names) as output:
            try:
                _run(folder, launch, output)
            except (RunError, *INTERRUPTS) as error:
                if launch.salvage is not None:
                    error.trace = launch.salvage(folder)  # type: ignore[union-attr] # of any of them
                raise
        if launch.stages:
            launch.tell("merging the records", sum(stage.steps for stage in launch.stages))
        yield folder


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="distsim-run-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, launch: Launch) -> None:
    try:
        rank_status.create(folder, len(launch.roles), set(range(len(launch.roles))).difference(launch.own))
        write_text(folder / JOB_FILE, json.dumps(launch.job))
        if launch.network is not None:
            coordination.place(folder, launch.network)
        if launch.node is not None:
            launch.node.place(folder)
    except OSError as error:
        raise InputError.of(
            "folder of the run", str(folder), f"cannot be written to ({error.strerror or error})",
            "free some space, or name another folder in TMPDIR",
        ) from None  # fmt: skip


def _run(folder: Path, launch: Launch, output: Output) -> None:
    """Starts torchrun and returns when all ranks have ended well."""
    command = [
        sys.executable, "-u", "-m", "distsim.runtime.launch.torchrun_agent",
        str(folder), str(len(launch.own)), str(launch.restarts), " ".join(launch.imports), *launch.entry,
    ]  # fmt: skip
    printing = os.open(output_pipe(folder, "agent"), os.O_WRONLY)
    try:
        with forked(
            command, environment=_environment(folder, launch), output=printing, imports=launch.imports,
            groups=lambda: [slot.pid for slot in rank_status.read(folder) if slot.pid],
        ) as agent:  # fmt: skip
            _watch(folder, launch, agent, output)
    finally:
        os.close(printing)


def _environment(folder: Path, launch: Launch) -> dict[str, str]:
    environment = os.environ | {
        FOLDER_VARIABLE: str(folder),
        "OMP_NUM_THREADS": "1",
        # DDP's imports create a folder for compiled kernels among the temporary files, and leave it there.
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "kernels"),
        "TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR"),
    }
    # gloo is told the interface: looking up this host's name can be slow, or wrong.
    interface = launch.node.interface() if launch.node else loopback()
    if interface is not None:
        environment.setdefault("GLOO_SOCKET_IFNAME", interface)
    if launch.node:
        environment[RANKS_VARIABLE] = " ".join(map(str, launch.own))
    return environment


def loopback() -> str:
    """The name of this machine's loopback interface."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == "127.0.0.1" for address in addresses):
            return name
    return "lo"


def _watch(folder: Path, launch: Launch, agent: Process, output: Output) -> None:
    """Returns when all ranks have ended well. Raises RunError when a rank has failed, or the deadline has passed."""
    deadline = time.monotonic() + launch.deadline_seconds
    failed_at = float("inf")
    done = 0
    # Where torchrun starts the ranks again, a rank with an error of its own would only meet the error again.
    grace = FAILURE_GRACE_SECONDS if not launch.restarts else 0.0
    while True:
        with suppress(subprocess.TimeoutExpired):
            agent.wait(LOOK_SECONDS)
        now = time.monotonic()
        slots = rank_status.read(folder)
        done = max(done, *(slot.steps_done for slot in slots))
        launch.tell(_doing(launch, slots, done), done)
        if agent.returncode is not None or now > failed_at + grace:
            break
        if now > deadline:
            raise RunError(_late(folder, launch, output))
        if failed_at > now and any(failure_file(folder, rank).exists() for rank in range(len(slots))):
            failed_at = now
    if refusal := coordination.refused(folder):
        raise refusal
    if agent.returncode != 0 or not all(slot.over for slot in slots):
        evidence = Evidence(folder, launch.roles, slots, output, now)
        if text := evidence.of_input():
            raise InputError(f"{launch.what}: {text}")
        raise RunError(f"{launch.what}: {evidence.of_failure(agent.returncode)}")


def _doing(launch: Launch, slots: Sequence[Status], done: int) -> str:
    """What the ranks do now, in a few words."""
    own = [slots[rank] for rank in launch.own]
    processes = "1 process" if len(own) == 1 else f"{len(own)} processes"
    if all(slot.over for slot in own):
        return f"ending {processes}"
    if done == 0 and any(slot.state is State.NOT_STARTED for slot in own):
        return f"starting {processes}{' on emulated links' if launch.network else ''}"
    if any(slot.activity == IMPORTING for slot in own):
        return f"loading torch in {processes}"
    if not launch.stages:
        return f"running {processes}"
    if done == 0:
        return f"connecting {processes}"
    before = 0
    for stage in launch.stages:
        if done < before + stage.steps:
            return f"{stage.what} {done - before + 1} of {stage.steps}"
        before += stage.steps
    return f"writing the records of {processes}"


def _late(folder: Path, launch: Launch, output: Output) -> str:
    slots = rank_status.read(folder)
    now = time.monotonic()
    _ask_for_stacks(folder, slots)
    evidence = Evidence(folder, launch.roles, slots, output, now)
    late = f"{launch.what}: not finished {launch.deadline_seconds:.4g} s after its launch, its deadline. "
    if launch.node and all(slots[rank].state is State.NOT_STARTED for rank in launch.own):
        return (
            f"{late}Node {launch.node.number} has waited at {launch.node.endpoint}, and not all {launch.node.nodes} "
            "nodes have come. Cure: start the same command on each node, with a --node-rank of its own"
        )
    if all(slots[rank].state is State.NOT_STARTED or slots[rank].activity == IMPORTING for rank in launch.own):
        cure = "No process had loaded torch by then, so this machine is busy. Cure: end other programs"
    else:
        cure = "Cure: find out what holds up the first rank below"
    longer = f"--deadline {2 * launch.deadline_seconds:.4g} in a terminal, deadline_seconds in Python"
    return f"{late}{cure}, or give a longer deadline: {longer}\n{evidence.of_deadline()}"


def _ask_for_stacks(folder: Path, slots: list[Status]) -> None:
    """Makes every running rank write its Python stacks. A stopped rank is not waited for long."""
    asked = []
    for slot in slots:
        if slot.state is State.RUNNING:
            try:
                os.kill(slot.pid, STACK_SIGNAL)
            except ProcessLookupError:
                continue
            asked.append(stacks_file(folder, slot.rank))
    give_up = time.monotonic() + STACKS_GRACE_SECONDS
    sizes: list[int] = []
    while time.monotonic() < give_up:
        before, sizes = sizes, [file.stat().st_size for file in asked]
        if all(sizes) and sizes == before:
            return
        time.sleep(0.05)
