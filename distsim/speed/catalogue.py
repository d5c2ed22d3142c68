"""Every speed figure: its scenario, its bound, and what SimGrid takes in C++ where that is known."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from distsim.engine.recurrence.rounds import ring_ends
from distsim.learning.optimizers import Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import replay
from distsim.network.offline_flows import in_columns
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.speed.figure import Duration, Figure, Growth, Memory, Work

MILLISECOND = 1e-3
HOSTS, FLOWS, FLOWS_PER_SECOND = 64, 5_000, 141.0  # the last: begin at one host
GIB = 2.0**30
LINEAR = 15.0  # ten times the steps, and half as much for caches that they no longer fit in

SYNCHRONOUS: dict[str, Any] = {"kind": "synchronous"}
BACKUP: dict[str, Any] = {"kind": "backup", "backups": 4}
CANCELLING: dict[str, Any] = BACKUP | {"cancel": True}
ASYNCHRONOUS: dict[str, Any] = {"kind": "asynchronous"}
STALE: dict[str, Any] = {"kind": "stale_synchronous", "staleness": 3}
FLEXRR: dict[str, Any] = {"kind": "flexrr"}
LOCAL_SGD: dict[str, Any] = {"kind": "local_sgd", "period": 5}
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


def one_ring(ranks: int) -> Callable[[], Work]:
    """A single all-reduce whose ranks start at different times, over links of different speeds."""

    def prepare() -> Work:
        generator = np.random.default_rng(ranks)
        starts, seconds = generator.random(ranks), generator.uniform(1e-3, 1e-2, ranks)
        return lambda: ring_ends(starts, seconds, 2 * (ranks - 1), eager=False)

    return prepare


def whole_run(
    policy: dict[str, Any], kind: str = "parameter_server", engine: Any = "auto", **size: Any
) -> Callable[[], Work]:
    """`simulate`, with its Trace."""

    def prepare() -> Work:
        scenario = training(policy, kind, **size)
        return lambda: simulate(scenario, engine=engine)

    return prepare


def _rings() -> list[Figure]:
    group = "Ring all-reduce by recurrence, unequal starts and links"
    return [
        Duration(group, "one, 64 ranks", 0.25 * MILLISECOND, one_ring(64), simgrid_seconds=11.5 * MILLISECOND),
        Duration(group, "one, 256 ranks", 1 * MILLISECOND, one_ring(256), simgrid_seconds=190 * MILLISECOND),
        Duration(
            group, "50 training steps, 64 ranks", 5 * MILLISECOND,
            whole_run(SYNCHRONOUS, "ring", different_nics=True),
        ),
    ]  # fmt: skip


def _whole_runs() -> list[Figure]:
    """What has a formula where NICs are equal, and what is left of it where they are not."""
    group = "64 workers × 50 steps, the whole simulate call with its Trace"
    found: list[Figure] = []
    for name, policy, kind, equal, different, simgrid in (
        ("synchronous, server", SYNCHRONOUS, "parameter_server", 5, 25, 35 * MILLISECOND),
        ("local SGD, ring", LOCAL_SGD, "ring", 5, 20, None),
        ("DDP in 20 buckets, ring", DDP, "ring", 5, 20, None),
    ):
        found += [
            Duration(group, f"{name}: equal NICs", equal * MILLISECOND, whole_run(policy, kind), simgrid),
            Duration(
                group, f"{name}: all differ", different * MILLISECOND,
                whole_run(policy, kind, different_nics=True), simgrid,
            ),
        ]  # fmt: skip
    return found


def _engines() -> list[Figure]:
    group = "64 workers × 50 steps, one server, by engine"
    story = [
        Duration(group, f"{name}, story", 100 * MILLISECOND, whole_run(policy, engine="story"))
        for name, policy in (RULES | {"FlexRR": FLEXRR}).items()
    ]
    loop = [
        Duration(group, f"{name}, loop", 15 * MILLISECOND, whole_run(policy, engine="loop"))
        for name, policy in RULES.items()
    ]
    return [*story, *loop]


LARGE: dict[str, Any] = {"workers": 100, "steps": 10_000}
LARGE_SECONDS = {"synchronous": 1, "backup": 3, "cancelling backup": 1, "asynchronous": 4, "stale synchronous": 4}


def _large() -> list[Figure]:
    group = "100 workers × 10,000 steps, one server"
    return [Duration(group, name, LARGE_SECONDS[name], whole_run(policy, **LARGE)) for name, policy in RULES.items()]


def given_flows(ends_of: Callable[..., object]) -> Callable[[], Work]:
    """`FLOWS` flows between random hosts; as many a second for each host as in SimGrid's case of 16 hosts."""

    def prepare() -> Work:
        generator = np.random.default_rng(HOSTS)
        capacities = generator.choice([1.25e9, 3.125e9, 12.5e9], 2 * HOSTS)  # up-links, and then down-links
        source = generator.integers(0, HOSTS, FLOWS)
        target = (source + generator.integers(1, HOSTS, FLOWS)) % HOSTS + HOSTS
        start = np.sort(generator.uniform(0.0, FLOWS / (HOSTS * FLOWS_PER_SECOND), FLOWS))
        num_bytes = generator.lognormal(np.log(18e6), 1.0, FLOWS).round()
        return lambda: ends_of(source, target, capacities, start, num_bytes)

    return prepare


def _flows() -> list[Figure]:
    group = f"{FLOWS:,} random flows that are all given, on {HOSTS} hosts"
    figures: list[Figure] = [Duration(group, "numpy", 2.5, given_flows(in_columns), simgrid_seconds=2.486)]
    if find_spec("numba"):
        from distsim.network.offline_flows_compiled import ends_of

        figures.append(Duration(group, "compiled by numba", 0.3, given_flows(ends_of), simgrid_seconds=2.486))
    return figures


def _learning() -> list[Figure]:
    """Without torch, so that the figure needs no more than the others."""

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
            lambda n: training(SYNCHRONOUS, steps=n), 3000, "recurrence",  # neither fits into a cache
        ),
    ]  # fmt: skip


def _memory() -> list[Figure]:
    group = "Peak memory of a process, 100 workers × 10,000 steps"
    return [
        Memory(group, name, GIB, lambda policy=policy: training(policy, **LARGE))  # type: ignore[misc]
        for name, policy in RULES.items()
    ]


FIGURES: tuple[Figure, ...] = (
    *_rings(), *_whole_runs(), *_engines(), *_large(), *_flows(), *_learning(), *_growth(), *_memory(),
)  # fmt: skip
