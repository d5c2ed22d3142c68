"""Every speed figure: its scenario, its bound, and SimGrid's time in C++ where it is known."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np

from distsim.cluster import Cluster
from distsim.collective_times.max_plus_rounds import ring_ends
from distsim.collectives import parameter_server, ring
from distsim.engine import collective
from distsim.engine.clock import Clock
from distsim.learning.optimizers import Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import replay
from distsim.network import Network
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.speed.figure import Duration, Figure, Growth, Memory, Process, Work

MILLISECOND = 1e-3
FLOWS, FLOWS_PER_SECOND = 5_000, 141.0  # flows per second: by each host
MEGABYTE, GIB = 1e6, 2.0**30
LINEAR = 15.0  # ten times the steps, and half as much for caches that they no longer fit in

SYNCHRONOUS: dict[str, Any] = {"kind": "synchronous"}
BACKUP: dict[str, Any] = {"kind": "backup", "backups": 4}
CANCELLING: dict[str, Any] = BACKUP | {"cancel": True}
ASYNCHRONOUS: dict[str, Any] = {"kind": "asynchronous"}
STALE: dict[str, Any] = {"kind": "stale_synchronous", "staleness": 3}
FLEXRR: dict[str, Any] = {"kind": "flexrr"}
LOCAL_SGD: dict[str, Any] = {"kind": "local_sgd", "period": 5}
PIPELINE: dict[str, Any] = {"kind": "pipeline", "schedule": "1f1b", "micro_batches": 8}
DDP: dict[str, Any] = {"kind": "ddp", "bucket": "200 KiB", "first_bucket": "200 KiB"}  # a layer each

RULES = {
    "synchronous": SYNCHRONOUS,
    "backup": BACKUP,
    "cancelling backup": CANCELLING,
    "asynchronous": ASYNCHRONOUS,
    "stale synchronous": STALE,
}


def training(
    policy: dict[str, Any],
    kind: str = "parameter_server",
    *,
    workers: int = 64,
    steps: int = 50,
    different_nics: bool = False,
) -> Scenario:
    """The run of all figures: lognormal steps of mean 50 ms and cv 0.3, gradients of 4 MiB in 20 layers, 100 Gbit/s.

    different_nics: every up-link and every down-link has its own speed, from 40 Gbit/s on.
    """
    nic = {str(i): {"up": f"{50 + i} Gbit/s", "down": f"{40.5 + i} Gbit/s"} for i in range(workers)}
    return Scenario.of(
        {
            "steps": steps,
            "seed": 7,
            "cluster": {"workers": workers, "bandwidth": "100 Gbit/s", "latency": "100 us"}
            | ({"nic": nic} if different_nics else {}),
            "compute": {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3},
            "workload": {"gradient": "4 MiB", "layers": 20},
            "policy": policy,
            "communication": {"kind": kind},
        }
    )


def one_ring(ranks: int, *, by_story: bool = False) -> Callable[[], Work]:
    """A single all-reduce whose ranks start at different times, over links of different speeds."""

    def prepare() -> Work:
        generator = np.random.default_rng(ranks)
        starts, seconds = generator.random(ranks), generator.uniform(1e-3, 1e-2, ranks)
        if not by_story:
            return lambda: ring_ends(starts, seconds, 2 * (ranks - 1), eager=False)
        up = {str(rank): {"up": f"{1e6 / ranks / wire!r} B/s"} for rank, wire in enumerate(seconds.tolist())}
        cluster = Cluster.model_validate({"workers": ranks, "bandwidth": "10 GB/s", "latency": "0 s", "nic": up})
        return lambda: collective.run(ring(ranks), cluster, 1e6, starts.tolist())

    return prepare


def run_of(scenario: Scenario, engine: Any = "auto") -> Callable[[], Work]:
    """The call of `simulate`, which returns its Trace."""
    return lambda: lambda: simulate(scenario, engine=engine)


def whole_run(
    policy: dict[str, Any], kind: str = "parameter_server", engine: Any = "auto", **size: Any
) -> Callable[[], Work]:
    """The call of `simulate` for a run of `training`. The measurement makes the scenario."""
    return lambda: run_of(training(policy, kind, **size), engine)()


def against(
    slower: str, group: str, name: str, milliseconds: float, policy: dict[str, Any], kind: str = "parameter_server",
    simgrid_seconds: float | None = None, engine: str = "auto", **size: Any,
) -> Duration:  # fmt: skip
    """The duration of a whole run, compared with the time of the next slower engine."""
    return Duration(
        group, name, milliseconds * MILLISECOND, whole_run(policy, kind, engine, **size), simgrid_seconds,
        (slower, whole_run(policy, kind, slower, **size)),
    )  # fmt: skip


def _rings() -> list[Figure]:
    group = "Ring all-reduce by recurrence, unequal starts and links"
    one = [
        Duration(
            group, f"one, {ranks} ranks", bound * MILLISECOND, one_ring(ranks), simgrid * MILLISECOND,
            ("story", one_ring(ranks, by_story=True)),
        )
        for ranks, bound, simgrid in ((64, 0.25, 11.5), (256, 1, 190))
    ]  # fmt: skip
    return [*one, against("story", group, "50 training steps, 64 ranks", 5, SYNCHRONOUS, "ring", different_nics=True)]


def _whole_runs() -> list[Figure]:
    """Runs that have a recurrence where NICs are equal, and the same runs where all NICs differ."""
    group = "64 workers × 50 steps, the whole simulate call with its Trace"
    found: list[Figure] = []
    for name, policy, kind, equal, different, slower, simgrid in (
        ("synchronous, server", SYNCHRONOUS, "parameter_server", 5, 25, ("loop", "story"), 35 * MILLISECOND),
        ("local SGD, ring", LOCAL_SGD, "ring", 5, 20, ("story", "story"), None),
        ("DDP in 20 buckets, ring", DDP, "ring", 5, 20, ("story", "story"), None),
    ):
        found.append(against(slower[0], group, f"{name}: equal NICs", equal, policy, kind, simgrid))
        all_differ = against(
            slower[1], group, f"{name}: all differ", different, policy, kind, simgrid, different_nics=True
        )
        # The story of DDP takes a minute: once is enough.
        found.append(replace(all_differ, slower=None) if policy is DDP else all_differ)
    return found


def _several_servers_and_stages() -> list[Figure]:
    """The runs that explorers simulate at every move of a control."""
    group = "50 steps by recurrence, equal compute times"
    constant: dict[str, Any] = {"compute": {"mean": "50 ms"}}
    servers = training(SYNCHRONOUS).replacing(constant | {"communication.servers": 4})
    colocated = training(SYNCHRONOUS, workers=16).replacing(
        constant | {"communication.servers": 16, "communication.colocated": True}
    )
    stages = training(SYNCHRONOUS, "ring", workers=8).replacing(
        constant | {"policy": PIPELINE, "workload.activation": "1 MB"}
    )
    return [
        Duration(
            group, name, bound * MILLISECOND, run_of(scenario), slower=("story", run_of(scenario, "story"))
        )
        for name, bound, scenario in (
            ("64 workers, 4 servers", 15, servers),
            ("16 workers, 16 colocated servers", 15, colocated),
            ("pipeline of 8 stages, 8 micro-batches", 10, stages),
        )
    ]  # fmt: skip


def _engines() -> list[Figure]:
    group = "64 workers × 50 steps, one server, by engine"
    story = [
        Duration(group, f"{name}, story", 100 * MILLISECOND, whole_run(policy, engine="story"))
        for name, policy in (RULES | {"FlexRR": FLEXRR}).items()
    ]
    loop = [against("story", group, f"{name}, loop", 15, policy, engine="loop") for name, policy in RULES.items()]
    return [*story, *loop]


LARGE: dict[str, Any] = {"workers": 100, "steps": 10_000}
BY_RECURRENCE = ("synchronous", "cancelling backup")
LARGE_SECONDS = {"synchronous": 1, "backup": 3, "cancelling backup": 1, "asynchronous": 4, "stale synchronous": 4}


def _large() -> list[Figure]:
    group = "100 workers × 10,000 steps, one server"
    return [
        against("loop", group, name, 1e3 * LARGE_SECONDS[name], policy, **LARGE)
        if name in BY_RECURRENCE
        else Duration(group, name, LARGE_SECONDS[name], whole_run(policy, **LARGE))  # the story takes minutes
        for name, policy in RULES.items()
    ]


def random_flows(hosts: int) -> Callable[[], Work]:
    """`FLOWS` flows between random hosts; each host starts as many per second as in SimGrid's case of 16 hosts."""

    def prepare() -> Work:
        generator = np.random.default_rng(hosts)
        capacities = generator.choice([1.25e9, 3.125e9, 12.5e9], 2 * hosts)  # up-links, and then down-links
        source = generator.integers(0, hosts, FLOWS)
        target = (source + generator.integers(1, hosts, FLOWS)) % hosts + hosts
        start = np.sort(generator.uniform(0.0, FLOWS / (hosts * FLOWS_PER_SECOND), FLOWS))
        num_bytes = generator.lognormal(np.log(18e6), 1.0, FLOWS).round()
        rows = list(zip(source.tolist(), target.tolist(), start.tolist(), num_bytes.tolist(), strict=True))
        return lambda: play(dict(enumerate(capacities.tolist())), rows)

    return prepare


def play(capacities: dict[int, float], rows: list[tuple[int, int, float, float]]) -> None:
    """Each row (up-link, down-link, start in seconds, bytes) is a process that sends a flow and waits for its end."""
    clock = Clock(0.0)
    network = Network(clock, capacities)

    def carry(up: int, down: int, start: float, num_bytes: float) -> Generator[Any, Any, None]:
        yield clock.timeout(start)
        yield network.transfer((up, down), num_bytes, 0.0)

    for row in rows:
        clock.process(carry(*row))
    clock.run()


def sharded_exchange(workers: int) -> Callable[[], Work]:
    """One exchange of a gradient of 1 GB through servers on all workers' hosts; all workers begin it at once."""

    def prepare() -> Work:
        cluster = training(SYNCHRONOUS, workers=workers).cluster
        return lambda: collective.run(parameter_server(workers, workers, colocated=True), cluster, 1e9)

    return prepare


def _flows() -> list[Figure]:
    random, sharded = f"{FLOWS:,} random flows, story", "256 workers with colocated servers, story"
    return [
        Duration(random, "on 64 hosts", 3, random_flows(64), simgrid_seconds=2.5),
        Duration(random, "on 256 hosts", 8, random_flows(256), simgrid_seconds=4.1),
        Duration(sharded, "one exchange", 1.5, sharded_exchange(256), simgrid_seconds=0.8),
    ]


def _learning() -> list[Figure]:
    """A problem without torch, so that the figure needs no more than the others."""

    def prepare() -> Work:
        trace, problem = simulate(training(ASYNCHRONOUS, workers=8, steps=6250)), Quadratic()
        return lambda: replay(trace, problem, Sgd(rate=0.05), batch=1)

    return [Duration("Replay of a trace", "50,000 asynchronous updates of the quadratic", 1, prepare)]


def _growth() -> list[Figure]:
    group = "64 workers: ten times the steps take so many times as long (linear: 10)"
    return [
        Growth(group, "story, 20 and 200 steps", LINEAR, lambda n: training(BACKUP, steps=n), 20, "story"),
        Growth(group, "loop, 50 and 500 steps", LINEAR, lambda n: training(BACKUP, steps=n), 50, "loop"),
        Growth(
            group, "recurrence, 3,000 and 30,000 steps", LINEAR,
            lambda n: training(SYNCHRONOUS, steps=n), 3000, "recurrence",  # neither run fits into a cache
        ),
    ]  # fmt: skip


def _memory() -> list[Figure]:
    group = "Peak memory of a process, 100 workers × 10,000 steps"
    return [
        Memory(group, name, GIB, lambda policy=policy: training(policy, **LARGE))  # type: ignore[misc]
        for name, policy in RULES.items()
    ]


def large_cluster(
    policy: dict[str, Any], kind: str, workers: int, steps: int, changes: dict[str, Any]
) -> Callable[[], Scenario]:
    """The run of `training` on a large cluster, with some keys changed."""
    return lambda: training(policy, kind, workers=workers, steps=steps).replacing(changes)


NODES: dict[str, Any] = {
    "cluster.nodes": {"per_node": 8, "bandwidth": "2400 Gbit/s", "latency": "5 us"},
    "communication.kind": "hierarchical",
}
GIGABYTE_IN_BUCKETS: dict[str, Any] = {
    "workload.gradient": "1 GB",
    "workload.layers": 160,
    "policy": {"kind": "ddp", "bucket": "25 MiB"},
}
STAGES: dict[str, Any] = {
    "policy": PIPELINE | {"micro_batches": 256}, "workload.layers": 64, "workload.activation": "1 MB",
    "compute.mean": "2 s",
}  # fmt: skip

LARGE_CLUSTERS: dict[str, tuple[float, float | None, Callable[[], Scenario]]] = {
    "ring, 1,024 × 50": (2, 500 * MEGABYTE, large_cluster(SYNCHRONOUS, "ring", 1024, 50, {})),
    "ring, 100 × 10,000": (3, GIB, large_cluster(SYNCHRONOUS, "ring", 100, 10_000, {})),
    "DDP, 1 GB in 25 MiB, 1,024 × 50": (3, 500 * MEGABYTE, large_cluster(DDP, "ring", 1024, 50, GIGABYTE_IN_BUCKETS)),
    "nodes of 8, 8,192 × 100": (5, GIB, large_cluster(SYNCHRONOUS, "ring", 8192, 100, NODES)),
    "nodes of 8, 65,536 × 10": (10, 2 * GIB, large_cluster(SYNCHRONOUS, "ring", 65_536, 10, NODES)),
    "1f1b of 256, 64 stages × 20": (2, 500 * MEGABYTE, large_cluster(SYNCHRONOUS, "ring", 64, 20, STAGES)),
    "backup, 4 servers, 100 × 2,000": (
        8, None, large_cluster(BACKUP, "parameter_server", 100, 2000, {"communication.servers": 4}),
    ),
    "backup, 10 servers, 1,000 × 300": (
        30, 1.5 * GIB,
        large_cluster(BACKUP | {"backups": 20}, "parameter_server", 1000, 300, {"communication.servers": 10}),
    ),
}  # fmt: skip


def _large_clusters() -> list[Figure]:
    """By name: the bounds in seconds and bytes, and the scenario."""
    group = "Large clusters, workers × steps: a whole process with its imports"
    times = [Process(group, name, seconds, scenario) for name, (seconds, _, scenario) in LARGE_CLUSTERS.items()]
    memory = [
        Memory(f"{group}, peak memory", name, most, scenario)
        for name, (_, most, scenario) in LARGE_CLUSTERS.items()
        if most is not None
    ]
    return [*times, *memory]


FIGURES: tuple[Figure, ...] = (
    *_rings(), *_whole_runs(), *_several_servers_and_stages(), *_engines(),
    *_large(), *_flows(), *_learning(), *_growth(), *_memory(), *_large_clusters(),
)  # fmt: skip
