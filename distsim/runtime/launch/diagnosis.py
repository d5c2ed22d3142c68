"""Explains in one message why a run failed: which rank failed, its activity, and the place in the code."""

from __future__ import annotations

import json
import re
import signal
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import distsim
from distsim.runtime.launch.rank_context import failure_file, stacks_file
from distsim.runtime.launch.rank_output import Output
from distsim.runtime.launch.torchrun_agent import FAILURES_FILE
from distsim.runtime.recording import clock
from distsim.runtime.recording.rank_status import State, Status

THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
TORCHRUN_LOG = re.compile(r"^[EWI]\d{4} .*torch/distributed/")
STORE_LOST = "RendezvousConnectionError"  # torchrun's, when the node that holds its store is gone
OTHER_NODE = "another node ended first, and says why; here "
OUR_FOLDER = str(Path(distsim.__file__).parent)
# For a rank that sleeps, or waits in the back end, the message shows the line that called them.
CALLED = (clock.__file__, str(Path(OUR_FOLDER, "runtime", "transport", "backend.py")))
LIBRARY_FOLDERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
LARGEST_TRACEBACK = 4000

Frame = tuple[str, int, str]  # file, line, function


class Evidence:
    """The files that a run's ranks left. roles: the role of each rank, such as "worker 2". now: monotonic seconds."""

    def __init__(self, folder: Path, roles: Sequence[str], statuses: list[Status], output: Output, now: float) -> None:
        self._folder = folder
        self._roles = roles
        self._statuses = statuses
        self._output = output
        self._now = now

    def of_deadline(self) -> str:
        """A line for each unfinished rank, the likeliest cause first, and the Python stacks."""
        unfinished = [status for status in self._statuses if not status.over]
        # A rank that waits for others is no cause: ranks that do not wait come first, then those that wait longest.
        unfinished.sort(key=lambda status: (status.state is State.RUNNING, status.waiting, status.since_seconds))
        lines = [self._standing(status) for status in unfinished]
        for status in unfinished:
            if frames := self._stack(status.rank):
                lines.append(f"Python stack of rank {status.rank}, innermost call first:")
                lines += [f"  {_place(frame)} in {frame[2]}" for frame in frames]
        return "\n".join(lines)

    def of_input(self) -> str | None:
        """The error in the user's input that a rank found only during the run; otherwise None."""
        own = self._own_failure()
        return str(own["text"]) if own and own["input"] else None

    def of_failure(self, agent_code: int | None) -> str:
        """The failure that came first. Failures that follow from it are left out."""
        own, records = self._own_failure(), self._records()
        if own:
            return self._raised(own)
        recorded = {record["rank"] for record in records}
        exits = self._exits()
        for number, (rank, code) in enumerate(exits.items()):
            # torchrun ends the other ranks by SIGTERM: only the first rank that it saw so ended can be the cause.
            if rank not in recorded and (number == 0 or code != -signal.SIGTERM):
                return self._died(rank, code)
        others = any(status.state is State.ELSEWHERE for status in self._statuses)
        if not records and agent_code != 0:
            lost = others and any(STORE_LOST in line for line in self._output.tail("agent"))
            return f"{OTHER_NODE}torchrun lost its connection to that node" if lost else self._launcher(agent_code)
        for status in self._statuses:
            if not status.over and status.rank not in recorded | exits.keys():
                return self._left(status.rank)
        consequence = self._raised(min(records, key=lambda record: float(record["seconds"])))
        return f"{OTHER_NODE}{consequence.splitlines()[0]}" if others else consequence

    def _own_failure(self) -> dict[str, Any] | None:
        """The first failure that does not follow from another rank's."""
        own = [record for record in self._records() if not record["consequence"]]
        return min(own, key=lambda record: float(record["seconds"]), default=None)

    def _raised(self, record: dict[str, Any]) -> str:
        rank = int(record["rank"])
        frames = [(str(file), int(line), str(name)) for file, line, name in reversed(record["frames"])]
        where = next((frame for frame in frames if _telling(frame)), None)
        at = f" at {_place(where)}" if where else ""
        what = f"called sys.exit({record['text']})" if record["kind"] == "SystemExit" else f"raised {record['kind']}"
        text = str(record["traceback"]).rstrip()
        if len(text) > LARGEST_TRACEBACK:
            text = f"{text[: LARGEST_TRACEBACK // 2]}\n  ...\n{text[-LARGEST_TRACEBACK // 2 :]}"
        return f"{self._name(rank)} {what}{at}, during {self._statuses[rank].activity}\n{text}"

    def _died(self, rank: int, code: int) -> str:
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name(rank)} {how} {self._during(rank)}{self._printed(str(rank))}"

    def _left(self, rank: int) -> str:
        return f"{self._name(rank)} left before the run was over {self._during(rank)}{self._printed(str(rank))}"

    def _launcher(self, code: int | None) -> str:
        if code is not None and code < 0:
            cause = "something outside ended the run, such as a scheduler at its time limit or a system without memory"
            return f"torchrun was ended by {_signal_name(-code)}, and no rank reported a failure: {cause}"
        how = "did not come to an end" if code is None else f"ended with exit code {code}"
        return f"torchrun {how}, and no rank reported a failure{self._printed('agent')}"

    def _during(self, rank: int) -> str:
        status = self._statuses[rank]
        if status.state is State.NOT_STARTED:
            return "before it started"
        return f"during {status.activity}{f' at {status.place}' if status.place else ''}"

    def _standing(self, status: Status) -> str:
        if status.state is State.NOT_STARTED:
            return f"{self._name(status.rank)} has not started{self._printed(str(status.rank))}"
        seconds = f"{self._now - status.since_seconds:.1f} s"
        here = next((frame for frame in self._stack(status.rank) if _telling(frame)), None)
        place = _place(here) if here else status.place
        at = f" at {place}" if place else ""
        verb = "has waited" if status.waiting else "has spent"
        return f"{self._name(status.rank)} {verb} {seconds} in {status.activity}{at}"

    def _name(self, rank: int) -> str:
        return f"rank {rank} ({self._roles[rank]})"

    def _printed(self, name: str) -> str:
        # Until a rank has entered its context, it prints where torchrun does.
        lines = self._output.tail(name) or self._output.tail("agent")
        lines = [line for line in lines if not TORCHRUN_LOG.match(line)]
        return "".join(["; it last printed:", *(f"\n  {line[:300]}" for line in lines)]) if lines else ""

    def _stack(self, rank: int) -> list[Frame]:
        """The stack of the main thread, from the innermost call to the script that the rank runs."""
        file = stacks_file(self._folder, rank)
        if not file.exists():
            return []
        main = THREAD.split(file.read_text("utf-8", errors="replace"))[-1]
        frames = [(match["file"], int(match["line"]), match["name"]) for match in FRAME.finditer(main)]
        return [frame for frame in frames if not frame[0].startswith("<frozen")]

    def _records(self) -> list[dict[str, Any]]:
        return [record for rank in range(len(self._roles)) if (record := self._record(rank))]

    def _record(self, rank: int) -> dict[str, Any] | None:
        file = failure_file(self._folder, rank)
        return json.loads(file.read_text("utf-8")) if file.exists() else None

    def _exits(self) -> dict[int, int]:
        """Exit codes by rank, in the order in which torchrun saw them."""
        file = self._folder / FAILURES_FILE
        failures = json.loads(file.read_text("utf-8")) if file.exists() else []
        return {failure["rank"]: failure["exitcode"] for failure in failures}


def _telling(frame: Frame) -> bool:
    """Whether the code is distsim's or the user's, rather than a library's."""
    file = frame[0]
    return file not in CALLED and (file.startswith(OUR_FOLDER) or not file.startswith((*LIBRARY_FOLDERS, "<")))


def _place(frame: Frame) -> str:
    return f"{Path(frame[0]).name}:{frame[1]}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
