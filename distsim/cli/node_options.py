"""The options of a command that runs on several machines, and its message on machines without the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from distsim.errors import InputError
from distsim.runtime.launch.node import Node


def node_options(command: Callable[..., None]) -> Callable[..., None]:
    """--nnodes, --node-rank and --rdzv-endpoint, as torchrun calls them."""
    for option in (
        click.option(
            "--rdzv-endpoint",
            metavar="HOST:PORT",
            help="Where the machines connect: node 0's name, and a free port of node 0.",
        ),
        click.option(
            "--node-rank",
            type=int,
            metavar="R",
            help="The number of this machine: 0 to N - 1. Machine 0 gets the trace.",
        ),
        click.option(
            "--nnodes",
            type=click.IntRange(min=1),
            metavar="N",
            default=1,
            help="Run on N machines; start the same command on each.",
        ),
    ):
        command = option(command)
    return command


def node_of(nnodes: int, node_rank: int | None, rdzv_endpoint: str | None) -> Node | None:
    """The machine that the options name; None where there is only one. Raises InputError for a missing option."""
    given = {"--node-rank": node_rank, "--rdzv-endpoint": rdzv_endpoint}
    if nnodes == 1 and (node_rank or 0) == 0:
        return None
    if missing := [name for name, value in given.items() if value is None]:
        raise InputError.of("--nnodes", nnodes, f"needs {' and '.join(missing)} too", "see distsim measure --help")
    assert node_rank is not None
    assert rdzv_endpoint is not None
    return Node.of(node_rank, nnodes, rdzv_endpoint)


def done_here(node: Node, ranks: Sequence[int]) -> str:
    """The message of a machine whose ranks ended well and whose records are on node 0.

    >>> done_here(Node(1, 2, "node0", 29500), [2, 3])
    'node 1 of 2: ranks 2 and 3 have ended well; node 0 has the trace'
    """
    *before, last = map(str, ranks)
    which = f"ranks {', '.join(before)} and {last}" if before else f"rank {last}"
    verb = "have" if before else "has"
    return f"node {node.number} of {node.nodes}: {which} {verb} ended well; node 0 has the trace"
