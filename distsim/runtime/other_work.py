"""What other programs took of this machine's cores while a real run lasted: times of such a run tell little."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from distsim.cores import in_words
from distsim.runtime.launch import fork_client
from distsim.runtime.machine import usable_cores

NOTED_SHARE = 0.1  # of all cores; other programs take less on every machine now and then
PARTS = ("user", "system", "nice", "steal")  # steal: what the host of a virtual machine gave to others


@dataclass
class OtherWork:
    """Cores of this machine, and how many of them other programs took on average. processes: of the run."""

    cores: int
    processes: int
    taken: float = 0.0

    @property
    def disturbs(self) -> bool:
        """Whether other programs took cores that the run needed."""
        return self.taken >= NOTED_SHARE * self.cores and self.processes > self.cores - self.taken

    def as_dict(self) -> dict[str, Any]:
        """The fields, for a trace's metadata."""
        return asdict(self)


@contextmanager
def other_work(processes: int) -> Iterator[OtherWork]:
    """Measures other programs' work until the block ends, in which a run starts `processes` and waits for their end.

    A fork server that outlives the run has waited for the run's processes.
    """
    found = OtherWork(usable_cores(), processes)
    start, everyone, own = time.monotonic(), _everyones_seconds(), _own_seconds()
    yield found
    seconds = time.monotonic() - start
    others = _everyones_seconds() - everyone - (_own_seconds() - own)
    found.taken = round(min(max(others / seconds, 0.0), found.cores), 2) if seconds > 0 else 0.0


def _everyones_seconds() -> float:
    """Core-seconds of all programs since the machine started, on the cores that this process may use."""
    of_each = psutil.cpu_times(percpu=True)
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(of_each))
    return sum(getattr(of_each[core], part, 0.0) for core in usable if core < len(of_each) for part in PARTS)


def _own_seconds() -> float:
    """Core-seconds of this process, of the processes that it has waited for, and of those that its fork server has."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + fork_client.server_seconds()


def notes(metadata: Mapping[str, Any]) -> list[str]:
    """A sentence if other programs took cores that the measured run with this metadata needed.

    >>> notes({"other_work": {"cores": 2, "processes": 2, "taken": 0.0}})
    []
    """
    work = OtherWork(**metadata["other_work"]) if "other_work" in metadata else None
    if work is None or not work.disturbs:
        return []
    return [
        f"other programs took {work.taken:.1f} of this machine's {in_words(work.cores)} during the real run, so its "
        "times are longer than on a quiet machine; run it again while nothing else runs"
    ]
