"""torchrun, in a process of its own.

    python -m distsim.runtime.launch.torchrun_agent FOLDER RANKS RESTARTS IMPORTS ENTRY...

It parses and runs as the `torchrun` command does, but forks its ranks, and writes their failures into a file instead of
a banner.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from distsim.errors import InputError
from distsim.files import write_text
from distsim.runtime.emulation import coordination
from distsim.runtime.launch import fork_client, lifeline, process_tree
from distsim.runtime.launch.node import RANKS_VARIABLE, Node
from distsim.runtime.launch.rank_context import end, reserve, use_reserve

FAILURES_FILE = "failures.json"
RESERVE_FILE = "reserve"
LOOK_SECONDS = 0.1  # how often torchrun looks after its ranks
PATIENCE_SECONDS = 86400  # for machines that have not come yet; the launching process's deadline comes first
CLOSE_SECONDS = 2  # that torchrun gives the other ranks once one has failed


def main(folder: Path, ranks: int, restarts: int, imports: list[str], entry: list[str]) -> int:
    """Runs `entry` (a script, or "-m" and a module) as `ranks` ranks here. Returns 0 if all ranks ended well.

    restarts: how often all ranks are started again after a failure. imports: the modules that ranks find imported.
    """
    # Before a second thread starts: only a process with one thread may enter a user namespace, or fork ranks.
    address = coordination.fulfil(folder)
    if address is None:
        return InputError.exit_code
    with fork_client.forked_ranks(imports):
        lifeline.keep(lambda: process_tree.abandon(folder), inherit=True)
        return _run(folder, address, ranks, restarts, entry)


def _run(folder: Path, address: str, ranks: int, restarts: int, entry: list[str]) -> int:
    """Runs torchrun to its end. address: where the ranks reach this process."""
    reserve(folder / RESERVE_FILE)
    node = Node.placed(folder)
    own = range(ranks) if node is None else [int(rank) for rank in os.environ[RANKS_VARIABLE].split()]
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    options = [
        *(_alone(address) if node is None else _among(node)), f"--nproc-per-node={ranks}",
        f"--max-restarts={restarts}", f"--monitor-interval={LOOK_SECONDS}",
        f"--log-dir={folder / 'torchrun'}",
    ]  # fmt: skip
    arguments = parse_args([*options, *entry])  # type: ignore[no-untyped-call] # torchrun has no types
    if hasattr(arguments, "shutdown_timeout"):  # older versions of torchrun always take 30 s
        arguments.shutdown_timeout = CLOSE_SECONDS
    try:
        run(arguments)  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        # In the order in which torchrun saw them: the rank that failed by itself, then the ranks that torchrun ended.
        failures = [
            {"rank": own[failure.local_rank], "exitcode": failure.exitcode} for failure in error.failures.values()
        ]
        use_reserve(folder / RESERVE_FILE)
        write_text(folder / FAILURES_FILE, json.dumps(failures))
        return 1
    except SignalException as error:  # torchrun has ended the ranks; the exit status says why
        signal.signal(error.sigval, signal.SIG_DFL)
        os.kill(os.getpid(), error.sigval)
    return 0


def _alone(address: str) -> list[str]:
    """torchrun's options for a run on one machine, whose ranks reach the agent at `address`."""
    return ["--standalone", f"--local-addr={address}"]


def _among(node: Node) -> list[str]:
    """torchrun's options for a run on several machines."""
    return [
        f"--nnodes={node.nodes}", f"--node-rank={node.number}", f"--local-addr={node.address()}",
        "--rdzv-backend=c10d", f"--rdzv-endpoint={node.endpoint}", "--rdzv-id=distsim",
        f"--rdzv-conf=is_host={node.gathers},join_timeout={PATIENCE_SECONDS},read_timeout={PATIENCE_SECONDS}",
    ]  # fmt: skip


if __name__ == "__main__":
    of_run = Path(sys.argv[1])
    try:
        status = main(of_run, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(), sys.argv[5:])
    finally:
        # Ranks end with the launching process too. torchrun may see that before the lifeline's thread is done.
        if lifeline.broken():
            process_tree.abandon(of_run)
    end(status)
