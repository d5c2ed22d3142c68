"""What this machine has for real runs."""

from __future__ import annotations

import os

import psutil

from distsim.cores import in_words
from distsim.errors import InputError
from distsim.scenario import Scenario
from distsim.units import show, write

RANKS_PER_CORE, FEW_RANKS = 4, 8  # more ranks on each core, and more in all: times tell little
BUFFERS = 2  # of a rank, at least, each as large as the gradient: its own, and the sum or what it receives
RANK_BYTES = 60e6  # of a rank's own, beside the libraries that all ranks share


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def core_of_rank(rank: int) -> int | None:
    """The core on which a pinned rank runs: the ranks take turns. None where a process cannot choose its core.

    >>> core_of_rank(0) == core_of_rank(usable_cores())
    True
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[rank % len(cores)]


def pin(core: int | None) -> None:
    """Keeps this process on a core; None changes nothing."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def crowding(ranks: int) -> str | None:
    """What to expect of so many processes on this machine's cores, in a sentence; None where they are not too many.

    >>> crowding(2) is None, "share" in str(crowding(100_000))
    (True, True)
    """
    cores = usable_cores()
    most = max(FEW_RANKS, RANKS_PER_CORE * cores)
    if ranks <= most:
        return None
    return (
        f"{ranks} processes share {in_words(cores)}. They start slowly and wait for a core in every step, so the "
        f"measured times say more about this machine than about the scenario. Up to {most} processes are "
        "worth measuring"
    )


def check_memory(scenario: Scenario, ranks: int) -> None:
    """Raises InputError where `ranks` processes of `scenario` do not fit into this machine's free memory."""
    if scenario.workload.handed_on_bytes:
        check_buffers("workload.activation", scenario.workload.handed_on_bytes, ranks)
    if scenario.policy.all_reduces:
        check_buffers("workload.gradient", scenario.gradient_bytes, ranks)


def check_buffers(asked: str, num_bytes: float, ranks: int) -> None:
    """Raises InputError where `ranks` processes with buffers of `num_bytes` do not fit into the free memory."""
    needed, free = ranks * (BUFFERS * num_bytes + RANK_BYTES), psutil.virtual_memory().available
    if needed > free:
        raise InputError.of(
            asked, write(num_bytes, "byte"),
            f"needs at least {show(needed, 'byte')} of memory in {ranks} processes, and {show(free, 'byte')} are free",
            "take fewer bytes or fewer processes",
        )  # fmt: skip
