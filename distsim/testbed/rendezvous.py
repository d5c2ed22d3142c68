"""How the ranks of a run meet: `init_process_group` and stores are the run's own, whatever a student's code asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, HashStore

from distsim.testbed import process_group, rank

# Not those of tutorials, so that code with an address or port of its own is told.
MEETING_PLACE = {"MASTER_ADDR": "127.0.0.2", "MASTER_PORT": "29617"}
LEAST_TIMEOUT_SECONDS = 60.0  # of a process group
KEPT: list[object] = []  # process groups, until the process ends
REAL_START = dist.init_process_group


@dataclass(frozen=True)
class Rendezvous:
    """The run's back end, and the place of this rank in it."""

    backend: str
    rank: int
    world: int

    def replace_torchs(self) -> None:
        """Puts the run's own functions in the place of torch's."""
        own = {"init_process_group": self.start, "TCPStore": self.store_at, "rendezvous": self.found}
        vars(dist).update(own)

    def start(self, backend: str | None = None, init_method: str | None = None, **options: Any) -> None:
        """As `init_process_group`, with the run's back end and store. Raises ValueError if the ranks could not meet."""
        world, number = options.get("world_size", -1), options.get("rank", -1)
        if world not in (-1, self.world) or number not in (-1, self.rank):
            raise ValueError(
                f"init_process_group was given rank {number} of {world}; this process is rank {self.rank} of "
                f"{self.world}, as the environment variables RANK and WORLD_SIZE say"
            )
        _look_at("init_process_group", init_method)
        timeout = options.get("timeout")
        if timeout is not None and timeout.total_seconds() < LEAST_TIMEOUT_SECONDS:
            raise ValueError(
                f"init_process_group was given a timeout of {timeout.total_seconds():g} s, and ranks may wait longer "
                f"for one that downloads: give at least {LEAST_TIMEOUT_SECONDS:g} s, or no timeout"
            )
        rank.note("init_process_group", {"backend": str(backend), "initialized": dist.is_initialized()})
        REAL_START(backend=self.backend, store=self._store(), rank=self.rank, world_size=self.world)
        # gloo's destructor waits for threads that may wait for Python's lock, so the group lives to the end.
        KEPT.append(dist.group.WORLD)

    def store_at(self, host_name: str, port: int, *_more: Any, **_options: Any) -> HashStore | FileStore:
        """As `TCPStore`: the run's store. Raises ValueError if it is another place than the launcher's."""
        _look_at("TCPStore", f"tcp://{host_name}:{port}")
        return self._store()

    def found(self, url: str, *_place: Any, **_options: Any) -> Iterator[tuple[HashStore | FileStore, int, int]]:
        """As `rendezvous`: a store, the rank and the world size. Raises ValueError as `store_at` does."""
        _look_at("rendezvous", url)
        yield self._store(), self.rank, self.world

    def _store(self) -> HashStore | FileStore:
        return HashStore() if self.backend == process_group.NAME else FileStore("store", self.world)


def _look_at(who: str, url: str | None) -> None:
    """Raises ValueError if the other processes are not at that address."""
    by_environment = "tcp://{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ)
    where = by_environment if url in (None, "env://") else str(url).partition("?")[0]
    if where != "tcp://{MASTER_ADDR}:{MASTER_PORT}".format(**MEETING_PLACE):
        raise ValueError(
            f"{who} looks for the other processes at {where}; the launcher has set MASTER_ADDR and MASTER_PORT to "
            f"{' and '.join(MEETING_PLACE.values())}"
        )
