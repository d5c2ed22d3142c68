"""The ways to train a model on a cluster, or on a part of it, with what each holds; none is simulated here.

A way is a policy with its settings, a collective and a number of workers. What does not fit into the memory of a device
is told with what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from distsim.collectives import ALL_REDUCES
from distsim.engine.selection import fastest
from distsim.errors import InputError
from distsim.memory import Held, held
from distsim.policies import Ddp, Sharded
from distsim.policies.tensor import has_blocks
from distsim.profile import Profile
from distsim.scenario import Scenario
from distsim.theory.arguments import above
from distsim.trace_size import check
from distsim.units import parse, write
from distsim.workload import Workload

STORY_WORKERS = 16  # more workers are simulated by a formula only
NO_FORMULA = (
    f"these links have no formula for them, and on more than {STORY_WORKERS} workers it takes long to simulate each "
    "transfer"
)
TOO_LARGE = "they are too large to simulate on this machine"
STEPS = 3  # all alike, but for the first, whose workers begin together
BUCKETS = ("5 MiB", "25 MiB", "100 MiB")
PARTS = (8, 2, 1)  # sharded training takes also buckets of so many parts of the model, for models of any size
PREFETCHES = (1, 2)
MOST_TENSOR = 8  # workers that share blocks, where no node has a fast tier
SHARED = ("ring", "hierarchical", "halving_doubling")  # all-reduces that training takes in practice


@dataclass(frozen=True)
class Way:
    """One way to train, and what it takes.

    scenario: as a file says it. held: of the worker that holds most. missing_bytes: of memory; 0 where it fits.
    untried: why the way is not simulated, `NO_FORMULA` or `TOO_LARGE`; empty where it is.
    seconds_per_sample, exposed_share: None where the way was not simulated. price_per_sample: None without a price.
    """

    scenario: Scenario
    held: Held
    missing_bytes: float = 0.0
    untried: str = ""
    seconds_per_sample: float | None = None
    exposed_share: float | None = None

    @property
    def samples(self) -> int:
        """Samples of one step, of all workers together; those of a pipeline, or of a group of a mesh, share a batch."""
        return self.scenario.samples_per_step

    @property
    def step_seconds(self) -> float | None:
        """The median step; None where the way was not simulated."""
        return None if self.seconds_per_sample is None else self.seconds_per_sample * self.samples

    @property
    def price_per_sample(self) -> float | None:
        """In the currency of the scenario's price."""
        cost = self.scenario.cost
        if cost is None or self.seconds_per_sample is None:
            return None
        return cost.price_per_hour * self.scenario.hosts * self.seconds_per_sample / 3600.0

    @property
    def name(self) -> str:
        """The way in a few words, such as "sharded, stage 3, bucket 25 MiB, ring, 64 workers"."""
        table, workers = self.scenario.table(), self.scenario.cluster.workers
        policy = table["policy"]
        settings = [f"{key} {value}".replace("_", " ") for key, value in policy.items() if key != "kind"]
        own, layers = self.scenario.policy, self.scenario.workload.layer_bytes
        if isinstance(own, Ddp) and len(own.buckets(layers)) == 1:
            settings = ["one bucket"]
        if isinstance(own, Sharded) and len(own.units(layers)) == 1:
            settings = [f"stage {own.stage}", "one unit"]
        words = [policy["kind"].replace("_", " "), *settings]
        if workers > 1 and (policy["kind"] != "pipeline" or {"data", "tensor"} & policy.keys()):
            words.append(table["communication"]["kind"].replace("_", " "))
        return ", ".join([*words, f"{workers} worker{'s' * (workers > 1)}"])

    def as_dict(self) -> dict[str, Any]:
        """The way as a table for JSON."""
        table = self.scenario.table()
        return {
            "way": self.name, "workers": self.scenario.cluster.workers, "policy": table["policy"],
            "communication": table["communication"], "fits": not self.missing_bytes,
            "held_bytes": asdict(self.held) | {"total": self.held.total}, "missing_bytes": self.missing_bytes,
            "untried": bool(self.untried), "seconds_per_sample": self.seconds_per_sample,
            "step_seconds": self.step_seconds,
            "exposed_communication_share": self.exposed_share, "price_per_sample": self.price_per_sample,
        }  # fmt: skip


def ways(
    profile: Profile, cluster: dict[str, Any], memory_bytes: float | None = None, optimizer: str = "adam",
    activation: str | None = None, cost: dict[str, Any] | None = None,
) -> list[Way]:  # fmt: skip
    """The ways to train the model of `profile` on the cluster, or on fewer of its workers; none simulated.

    cluster: a scenario's [cluster] table. memory_bytes: of one device; None: unlimited. optimizer: one of
    `distsim.memory.OPTIMIZERS`. activation: what one layer hands to the next for a whole batch, such as "8 MB"; without
    it there are no pipelines, and no meshes of a transformer. cost: a scenario's [cost] table. Raises InputError where
    the cluster's table is wrong, or has too many workers to simulate here.
    """
    above(0, **{"profile.backward_seconds": profile.backward_seconds})
    found = []
    most = Scenario.of(_smallest(cluster), source="plan").cluster.workers
    nic = {str(host): own for host, own in cluster.get("nic", {}).items()}
    for workers in sorted({1 << power for power in range(most.bit_length())} | {most}):
        theirs = {host: own for host, own in nic.items() if host.isdecimal() and int(host) < workers}
        for policy, kind in _combinations(profile, cluster, workers, hands_on=activation is not None):
            table: dict[str, Any] = {
                "name": "plan", "steps": STEPS, "cluster": cluster | {"workers": workers, "nic": theirs},
                "compute": {"mean": "0 s"}, "workload": {"profile": profile}, "policy": policy,
                "communication": {"kind": kind} | ({} if kind == "ring" else {"implementation": "schedule"}),
            }  # fmt: skip
            if activation is not None:
                table["workload"] |= {"activation": activation}
            if cost is not None:
                table["cost"] = cost
            scenario = Scenario.of(table, source="plan", recorded=True)  # of any size
            kept = held(scenario, optimizer)
            missing = max(kept.total - memory_bytes, 0.0) if memory_bytes else 0.0
            found.append(Way(scenario, kept, missing, _untried(scenario)))
    return found


def _untried(scenario: Scenario) -> str:
    try:
        engine = fastest(scenario)
        check(scenario, derived=engine != "story")
    except (InputError, ValueError):
        return TOO_LARGE
    return NO_FORMULA if engine == "story" and scenario.cluster.workers > STORY_WORKERS else ""


def _smallest(cluster: dict[str, Any]) -> dict[str, Any]:
    """A scenario that checks the cluster's table, which may name the NIC of a server."""
    return {
        "steps": 1, "cluster": cluster, "compute": {"mean": "1 ms"}, "workload": {"gradient": "1 MB"},
        "policy": {"kind": "synchronous"}, "communication": {"kind": "parameter_server"},
    }  # fmt: skip


def _combinations(
    profile: Profile, cluster: dict[str, Any], workers: int, *, hands_on: bool
) -> Iterator[tuple[dict[str, Any], str]]:
    """Policies and kinds of communication for so many workers. One worker alone has nothing to choose."""
    if workers == 1:
        yield {"kind": "synchronous"}, "ring"
        return
    size = profile.gradient_bytes
    whole = f"{size} B"
    buckets = [bucket for bucket in BUCKETS if parse(bucket, "byte") < size]
    for kind in _all_reduces(cluster, workers):
        yield {"kind": "synchronous"}, kind
        for bucket in buckets:
            yield {"kind": "ddp", "bucket": bucket, "first_bucket": "1 MiB"}, kind
        yield {"kind": "ddp", "bucket": whole, "first_bucket": whole}, kind
    for stage, (units, number) in product((1, 2, 3), _units(profile, buckets)):
        for prefetch in PREFETCHES[: max(1, number - 1)]:  # the first unit has only the others ahead
            yield {"kind": "sharded", "stage": stage, "prefetch": prefetch} | units, "ring"
    if hands_on and has_blocks(profile.model):
        for tensor in _tensors(cluster, workers):
            for stage in (0, 1, 2, 3) if tensor < workers else (0,):
                yield {"kind": "mesh", "data": workers // tensor, "tensor": tensor, "stage": stage}, "ring"
    if hands_on:
        yield from _pipelines(profile, cluster, workers)


def _units(profile: Profile, buckets: Sequence[str]) -> Iterator[tuple[dict[str, str], int]]:
    """What units of sharded training hold, and how many there are: a layer, `buckets`, parts of the model, or all.

    What makes the same units is yielded once.
    """
    layers = Workload(profile=profile).layer_bytes
    known = []
    for bucket in (None, *buckets, *(_bucket(profile.gradient_bytes / part) for part in PARTS)):
        units = Sharded(stage=1, bucket_bytes=parse(bucket, "byte") if bucket else None).units(layers)
        if units not in known:
            known.append(units)
            yield {"bucket": bucket} if bucket else {}, len(units)


def _bucket(num_bytes: float) -> str:
    """A bucket that holds so many bytes, rounded up to three digits.

    >>> _bucket(859_488), _bucket(3_437_952), _bucket(4)
    ('860 kB', '3.44 MB', '4 B')
    """
    last = max(10.0 ** (math.floor(math.log10(num_bytes)) - 2), 1.0)
    return write(math.ceil(num_bytes / last) * last, "byte")


def _pipelines(profile: Profile, cluster: dict[str, Any], workers: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Pipelines of single workers by both schedules; those of groups by 1F1B, which holds less than GPipe.

    Micro-batches are one, two or four for each stage, or some more, so that all have as many samples; where the batch
    has too few, one for each sample.
    """
    layers = len(profile.layers)
    blocks = sum(layer.forward_seconds > 0.0 for layer in profile.layers)
    shared = _tensors(cluster, workers) if has_blocks(profile.model) else ()
    for tensor in (1, *shared):
        for stages in range(2, min(workers // tensor, layers) + 1):
            data, left = divmod(workers, tensor * stages)
            if left or (tensor > 1 and blocks % stages):
                continue
            counts = {
                _even(profile.batch, count) for count in (stages, 2 * stages, 4 * stages) if count <= profile.batch
            }
            for count in sorted(counts or {profile.batch}):
                way = {"kind": "pipeline", "micro_batches": count}
                if data * tensor == 1:
                    yield from ((way | {"schedule": schedule}, "ring") for schedule in ("gpipe", "1f1b"))
                    continue
                for stage in (0, 1) if data > 1 else (0,):
                    yield way | {"schedule": "1f1b", "data": data, "tensor": tensor, "stage": stage}, "ring"


def _even(batch: int, least: int) -> int:
    """The least number of micro-batches from `least` to four times as many that divides a batch evenly, or `least`.

    Without such a number, micro-batches have more than four samples each, and differ by one.

    >>> _even(6, 4), _even(7, 3), _even(10_007, 2)
    (6, 7, 2)
    """
    return next((count for count in range(least, 4 * least + 1) if batch % count == 0), least)


def _tensors(cluster: dict[str, Any], workers: int) -> Iterator[int]:
    """How many workers may share blocks: a part of a node, or where there are no nodes, a few."""
    per_node = (cluster.get("nodes") or {}).get("per_node")
    for tensor in range(2, min(per_node or MOST_TENSOR, workers) + 1):
        if workers % tensor == 0 and (per_node or MOST_TENSOR) % tensor == 0:
            yield tensor


def _all_reduces(cluster: dict[str, Any], workers: int) -> Iterator[str]:
    per_node = (cluster.get("nodes") or {}).get("per_node", 0)
    for kind in SHARED:
        if ALL_REDUCES[kind].needs_nodes and not (per_node and workers > per_node and workers % per_node == 0):
            continue
        yield kind
