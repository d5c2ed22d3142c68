"""The files by which the launching process, torchrun's agent and the ranks agree on an emulated cluster.

The launching process writes the plan into the run's folder. The agent builds the network before anything else, or
refuses. The agent is in the switch then, so every host reaches its store. The ranks are its children: they start in the
switch, and enter their hosts before anything else. Without a plan all processes stay in the machine's own network.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distsim.errors import InputError
from distsim.files import write_text
from distsim.runtime.emulation import namespaces
from distsim.runtime.emulation.network import NIC, SWITCH_ADDRESS, Network, build
from distsim.runtime.emulation.plan import NetworkPlan

PLAN_FILE = "network.json"
IMPOSED_FILE = "imposed.json"
REFUSAL_FILE = "refusal.txt"
HOSTS_VARIABLE = "DISTSIM_HOSTS"  # of the ranks: the namespace of each rank's host, in order
CORES_VARIABLE = "DISTSIM_HOST_CORES"  # of the ranks: the cores of each rank's host, in order; unset if hosts share
LOOPBACK_ADDRESS = "127.0.0.1"


def place(folder: Path, plan: NetworkPlan) -> None:
    """Writes the plan for the run in `folder`. The launching process calls it."""
    write_text(folder / PLAN_FILE, json.dumps(plan.table()))


def fulfil(folder: Path) -> str | None:
    """The agent builds the planned network. Returns the agent's address for ranks; None for a refusal."""
    if not (folder / PLAN_FILE).exists():
        return LOOPBACK_ADDRESS
    plan = NetworkPlan.of_table(json.loads((folder / PLAN_FILE).read_text("utf-8")))
    try:
        network = build(plan)
    except InputError as error:
        write_text(folder / REFUSAL_FILE, str(error))
        return None
    write_text(folder / IMPOSED_FILE, json.dumps(_facts(plan, network)))
    ranks = range(sum(len(host.ranks) for host in plan.hosts))
    os.environ[HOSTS_VARIABLE] = " ".join(network.hosts[plan.home_of(rank)] for rank in ranks)
    if network.cores:
        os.environ[CORES_VARIABLE] = " ".join(",".join(map(str, network.cores[plan.home_of(rank)])) for rank in ranks)
    os.environ["GLOO_SOCKET_IFNAME"] = NIC
    return SWITCH_ADDRESS


def _facts(plan: NetworkPlan, network: Network) -> dict[str, Any]:
    return plan.table() | {
        "latency_seconds": plan.latency_seconds if network.latency_imposed else None,
        "bandwidth_counts": "payload",
        "right": network.right,
        "grain": asdict(network.grain),
        "cores": [*map(list, network.cores)],
    }


def refused(folder: Path) -> InputError | None:
    """Why the agent could not build the network; None where it could."""
    file = folder / REFUSAL_FILE
    return InputError(file.read_text("utf-8")) if file.exists() else None


def enter_host(rank: int) -> None:
    """Moves a rank to the network namespace of its host, and to the host's cores."""
    if hosts := os.environ.get(HOSTS_VARIABLE):
        namespaces.enter_path(hosts.split()[rank])
    if cores := os.environ.get(CORES_VARIABLE):
        os.sched_setaffinity(0, map(int, cores.split()[rank].split(",")))


def imposed(folder: Path) -> dict[str, Any] | None:
    """The facts about the links that were imposed in `folder`'s run, in values that JSON can hold. None without a plan.

    hosts: the ranks and the bytes per second, up and down, of each; bandwidth_counts: which bytes the bandwidth counts;
    grain: how finely the links cut time; cores: those of each host, empty where all hosts share all cores;
    latency_seconds: None where the kernel could not impose it; measured_latency_seconds: from `note_latency`.
    """
    file = folder / IMPOSED_FILE
    facts: dict[str, Any] | None = json.loads(file.read_text("utf-8")) if file.exists() else None
    return facts


def note_latency(folder: Path, seconds: float) -> None:
    """Adds the measured time of an empty message between two hosts to the facts. A rank calls it."""
    write_text(folder / IMPOSED_FILE, json.dumps((imposed(folder) or {}) | {"measured_latency_seconds": seconds}))
