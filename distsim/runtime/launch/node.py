"""One machine of a real run on several: which ranks run there, and where the machines meet.

Every machine is started with the same scenario. torchrun numbers ranks in the order in which machines arrive. Here they
are divided by the machines' own numbers, so that it is known before the run which rank runs where.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from distsim.errors import InputError
from distsim.files import write_text

if TYPE_CHECKING:
    from distsim.scenario import Scenario

NODE_FILE = "node.json"
RANKS_VARIABLE = "DISTSIM_RANKS"  # in a run on several machines: the ranks of this machine, in order


@dataclass(frozen=True)
class Node:
    """Machine number `number` of `nodes`. All meet where machine 0 listens, and machine 0 gets the trace.

    >>> Node(1, 2, "10.0.0.1", 29500)
    Node(number=1, nodes=2, host='10.0.0.1', port=29500)
    """

    number: int
    nodes: int
    host: str
    port: int

    @classmethod
    def of(cls, number: int, nodes: int, endpoint: str) -> Node:
        """Raises InputError where `endpoint` is not "HOST:PORT", or there is no such number among `nodes`.

        >>> Node.of(0, 2, "[::1]:29500").host
        '::1'
        """
        host, _, port = endpoint.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 65536:
            raise InputError.of("--rdzv-endpoint", endpoint, "is not HOST:PORT", "write node0.example.org:29500")
        if not 0 <= number < nodes:
            raise InputError.of(
                "--node-rank", number, f"is not one of {nodes} nodes, which count from 0",
                f"write 0 to {nodes - 1}, another on each",
            )  # fmt: skip
        return cls(number, nodes, host, int(port))

    @property
    def endpoint(self) -> str:
        """The meeting point, as torchrun reads it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def gathers(self) -> bool:
        """Whether this machine gets the records of all ranks."""
        return self.number == 0

    def address(self) -> str:
        """The address from which this machine reaches the meeting point. Raises InputError where it cannot."""
        try:
            family, kind, *_, target = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(target)  # sends nothing
                return str(probe.getsockname()[0])
        except (OSError, ValueError) as error:  # ValueError: no host can have this name
            raise InputError.of(
                "--rdzv-endpoint", self.endpoint,
                f"cannot be reached from here ({getattr(error, 'strerror', None) or error})",
                "write the name or address of node 0 as the other nodes know it",
            ) from None  # fmt: skip

    def check(self) -> None:
        """Raises InputError where this machine cannot reach the meeting point, or machine 0 cannot listen there."""
        address = self.address()
        if not self.gathers:
            return
        version = ipaddress.ip_address(address.partition("%")[0]).version
        with socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET) as listener:
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("", self.port))
            except OSError as error:
                raise InputError.of(
                    "--rdzv-endpoint", self.endpoint, f"node 0 cannot listen there ({error.strerror})",
                    "take another port",
                ) from None  # fmt: skip

    def interface(self) -> str | None:
        """The name of the network interface that leads to the meeting point."""
        address = self.address()
        for name, found in psutil.net_if_addrs().items():
            if any(one.address == address for one in found):
                return name
        return None

    def place(self, folder: Path) -> None:
        """Writes this node into the run's folder, for torchrun's agent."""
        write_text(folder / NODE_FILE, json.dumps(asdict(self)))

    @classmethod
    def placed(cls, folder: Path) -> Node | None:
        """The node that `place` wrote; None where it wrote none."""
        file = folder / NODE_FILE
        return cls(**json.loads(file.read_text("utf-8"))) if file.exists() else None


def shares(scenario: Scenario, ranks: int, nodes: int) -> list[list[int]]:
    """The ranks of each machine: the scenario's hosts in order, in parts that differ by one host at most.

    Ranks on one host of the scenario stay together: a colocated server runs where its worker runs. Raises InputError
    where a machine would have no rank.

    >>> from distsim.examples import example
    >>> shares(example("backup_server"), ranks=6, nodes=4)
    [[0, 1], [2, 3], [4], [5]]
    """
    by_host = sorted(range(ranks), key=lambda rank: (scenario.host(rank), rank))
    hosts = [list(group) for _, group in groupby(by_host, key=scenario.host)]
    if nodes > len(hosts):
        raise InputError.of(
            "--nnodes", nodes, f"is more than the {len(hosts)} hosts of the scenario", f"write {len(hosts)} or less"
        )
    each, more = divmod(len(hosts), nodes)
    ends = [each * (node + 1) + min(node + 1, more) for node in range(nodes)]
    return [
        sorted(rank for host in hosts[start:end] for rank in host) for start, end in zip([0, *ends], ends, strict=False)
    ]


def take_rank() -> int:
    """The rank of this process in the run, as torchrun and the agent say. Sets RANK, which torch reads, to it."""
    if ranks := os.environ.get(RANKS_VARIABLE):
        os.environ["RANK"] = ranks.split()[int(os.environ["LOCAL_RANK"])]
    return int(os.environ["RANK"])
