"""Steps of runs on several machines: ranks compare their start arguments, and send their records to rank 0.

The machines share no folder. So ranks compare through the back end's store, and records travel as messages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import torch

import distsim
from distsim.errors import InputError
from distsim.runtime.launch.rank_context import RankContext
from distsim.runtime.recording.recorder import record_file
from distsim.runtime.transport import backend
from distsim.runtime.transport.backend import Meeting

SAME = ("scenarios", "rules", "machines")  # of the job, on all machines


def introduce(context: RankContext, meeting: Meeting) -> None:
    """Compares the start arguments of all ranks. Raises InputError, on every rank, where they do not make one run."""
    job = {key: context.job[key] for key in SAME} | {"distsim": distsim.__version__, "torch": torch.__version__}
    digest = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
    store, ranks = meeting.store, meeting.ranks
    own = store.add("introduced", 1)
    store.set(f"introduction_{own}", json.dumps([context.rank, digest]))
    told = [json.loads(store.get(f"introduction_{number}")) for number in range(1, ranks + 1)]
    if len({digest for _, digest in told}) > 1:
        raise InputError(
            "the nodes were started with different scenarios, rules, numbers of nodes or versions. "
            "Cure: start the same command on all, but for --node-rank"
        )
    taken = sorted(rank for rank, _ in told)
    if taken != list(range(ranks)):
        raise InputError.of(
            "--node-rank", context.job["node"], "was given to two nodes", "write 0, 1, 2 and so on, another on each"
        )


def hand_in(context: RankContext, number: int, machines: Sequence[Sequence[int]]) -> None:
    """Sends the records of scenario number `number` to the machine of rank 0, one after the other."""
    for rank in (rank for machine in machines[1:] for rank in machine):
        file = record_file(context.folder, number, rank)
        if context.rank == rank:
            content = torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
            backend.send(torch.tensor([content.numel()]), 0)
            backend.send(content, 0)
        elif context.rank == 0:
            length = torch.zeros(1, dtype=torch.int64)
            backend.receive(length, rank)
            content = torch.empty(int(length.item()), dtype=torch.uint8)
            backend.receive(content, rank)
            file.write_bytes(content.numpy().tobytes())
