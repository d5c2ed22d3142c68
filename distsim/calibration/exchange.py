"""The effective bandwidth and latency of one exchange, measured at the scenario's own number of workers.

A machine's own links do not have the scenario's bandwidth and latency. A calibration runs the scenario's collective,
or its exchange with the server, at the same number of workers and at two sizes, with little work in between. It then
solves the cost formula for the two unknowns, latency a and bandwidth B:

    ring                2 (N - 1) (a + S / (N B))
    parameter server    2 (a + N S / B)
    pipeline            2 (N - 1) (a + S / B), S: the activation of one micro-batch
    other collectives   their closed forms in `theory.collectives`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from pydantic import ConfigDict

from distsim.collective_costs import collective_seconds
from distsim.communication import AllReduceKind
from distsim.cores import Cores, in_words
from distsim.policies import Pipeline, Programmed
from distsim.scenario import Scenario
from distsim.trace import COMPUTE_KINDS, SpanKind, Trace
from distsim.units import BOUNDS, rate, show, write
from distsim.validated_table import Count

PROBE_STEPS = 25
WARM_UP_STEPS = 5
PROBE_COMPUTE = "4 ms"  # every rank is ready when the exchange begins, and the cores rest between exchanges
SMALL_SHARE = 0.25  # the smaller size, as a share of the scenario's gradient

Time = Annotated[float, Ge(0.0), Le(BOUNDS["second"][1])]


@dataclass(frozen=True)
class Exchange:
    """The links of one collective at one number of workers.

    points: (bytes, seconds) of the measured exchanges; the seconds are medians over the steps.
    apply_seconds: the server's own work for one update; 0 without servers.
    model_seconds: real forward and backward of one batch, if the scenario has a model.
    measured_workers: the numbers of workers at which a machine's links were fitted; empty for an exchange of its own.
    cores: those that the ranks share while they compute and exchange; they then count a model's work, and
    model_seconds is 0.
    """

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)  # for files

    kind: AllReduceKind
    workers: Count
    bandwidth_bytes_per_second: Annotated[float, Ge(BOUNDS["byte/second"][0]), Le(BOUNDS["byte/second"][1])]
    latency_seconds: Time
    apply_seconds: Time
    points: tuple[tuple[Annotated[float, Ge(0.0)], Time], ...]
    model_seconds: Time = 0.0
    measured_workers: tuple[Count, ...] = ()
    cores: Cores | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values for JSON."""
        return asdict(self) | {
            "points": [list(point) for point in self.points], "measured_workers": list(self.measured_workers)
        }  # fmt: skip

    def describe(self) -> str:
        """One sentence for the report."""
        bandwidth, latency = rate(self.bandwidth_bytes_per_second), show(self.latency_seconds, "second")
        details = [f"{show(size, 'byte')} took {show(seconds, 'second')}" for size, seconds in self.points]
        if self.measured_workers:
            at = ", ".join(map(str, self.measured_workers))
            details.append(f"fitted at {at} workers, for messages of this run's size")
        model = f", and {show(self.model_seconds, 'second')} of real compute per step" if self.model_seconds else ""
        if self.cores:
            work, cores = show(self.cores.step_seconds, "second"), in_words(self.cores.count)
            model = (
                f"; in each step a worker computes for {work} alone, and {cores}, when all are busy, do the work of "
                f"{self.cores.capacity:.3g}"
            )
        return (
            f"links calibrated on this machine for {self.kind.replace('_', ' ')} and {self.workers} workers: "
            f"{bandwidth} and {latency} in place of the scenario's ({', '.join(details)}){model}"
        )


def calibrated(scenario: Scenario, exchange: Exchange) -> Scenario:
    """A copy of `scenario` with the measured links; exceptions for single NICs are removed.

    The measured time of a model's forward and backward is added to the drawn compute time.
    """
    table = scenario.table()
    table["cluster"] |= {
        "bandwidth": write(exchange.bandwidth_bytes_per_second, "byte/second"),
        "latency": write(exchange.latency_seconds, "second"),
    }
    table["cluster"].pop("nic", None)
    if "nodes" in table["cluster"]:  # a machine's own links have no fast tier
        links = {key: table["cluster"][key] for key in ("bandwidth", "latency")}
        table["cluster"]["nodes"] = table["cluster"]["nodes"] | links
    if exchange.model_seconds:
        added = scenario.compute.added_seconds + exchange.model_seconds
        table["compute"]["added"] = write(added, "second")
    return Scenario.of(table)


def probes(scenario: Scenario) -> list[Scenario]:
    """The scenarios to measure, smaller gradient first: the same exchange with little work in between."""
    sizes = [exchanged_bytes(scenario) * SMALL_SHARE, exchanged_bytes(scenario)]
    exchanged = "activation" if isinstance(scenario.policy, Pipeline) else "gradient"
    table = scenario.table()
    communication: dict[str, Any] = {"kind": scenario.communication.kind, "sends": scenario.communication.sends}
    programmed = isinstance(scenario.policy, Programmed)  # whose exchanges follow schedules
    communication["implementation"] = "schedule" if programmed else scenario.communication.implementation
    if scenario.servers:
        communication |= {"servers": len(scenario.servers), "colocated": scenario.communication.colocated}
        communication["receive"] = scenario.receive
    return [
        Scenario.of(
            {
                "name": f"calibration of {scenario.name}",
                "steps": WARM_UP_STEPS + PROBE_STEPS,
                "seed": scenario.seed,
                "cluster": table["cluster"],
                "compute": {"mean": PROBE_COMPUTE},
                "workload": {exchanged: write(float(math.ceil(size)), "byte")},
                "policy": _probe_policy(scenario),
                "communication": communication,
            }
        )
        for size in sizes
    ]


def exchanged_bytes(scenario: Scenario) -> float:
    """Bytes of one exchange: of a gradient, or in a pipeline of one micro-batch's activation.

    Where a policy has a program of exchanges, of its largest one.
    """
    if isinstance(scenario.policy, Programmed):
        program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
        return max(exchange.num_bytes for exchange in program.exchanges)
    if isinstance(scenario.policy, Pipeline):
        return (scenario.workload.handed_on_bytes or 0.0) / scenario.policy.micro_batches
    return scenario.gradient_bytes


def _probe_policy(scenario: Scenario) -> dict[str, Any]:
    """A policy that does the scenario's exchange at each step, and nothing else."""
    if isinstance(scenario.policy, Pipeline):
        return {"kind": "pipeline", "micro_batches": 1}
    # Under local SGD servers follow a schedule; under other policies they follow a rule.
    return {"kind": "local_sgd", "period": 1} if scenario.policy.averages_parameters else {"kind": "synchronous"}


def fit(traces: Sequence[Trace]) -> Exchange:
    """The exchange measured by the traces of `probes`."""
    scenario = traces[0].scenario
    workers = scenario.cluster.workers
    points = tuple((exchanged_bytes(trace.scenario), float(np.median(exchange_seconds(trace)))) for trace in traces)
    per_latency, per_byte = _cost(scenario)
    (small, small_seconds), (large, large_seconds) = points[0], points[-1]
    slope = (large_seconds - small_seconds) / (large - small) if large > small else 0.0
    # Noise can hide the slope or the latency. All seconds of the large message then count as bandwidth.
    slope = slope if 0.0 < slope * large <= large_seconds else large_seconds / max(large, 1.0)
    bandwidth = per_byte / slope if per_byte and slope else scenario.cluster.bandwidth_bytes_per_second
    least, most = BOUNDS["byte/second"]
    floor = max(large_seconds - slope * large, 0.0)
    applies = traces[-1].spans.of_kind(SpanKind.APPLY)
    return Exchange(
        kind=scenario.communication.kind,
        workers=workers,
        bandwidth_bytes_per_second=min(max(bandwidth, least), most),
        latency_seconds=floor / per_latency if per_latency else 0.0,
        apply_seconds=float(np.median(applies.end_seconds - applies.start_seconds)) if len(applies) else 0.0,
        points=points,
    )


def _cost(scenario: Scenario) -> tuple[float, float]:
    """How many latencies one exchange takes, and how many times the gradient's bytes cross the busiest link."""
    workers = scenario.cluster.workers
    if isinstance(scenario.policy, Pipeline):
        return 2.0 * (workers - 1), 2.0 * (workers - 1)
    return _all_reduce_seconds(scenario, 0.0, 1.0), _all_reduce_seconds(scenario, 1.0, 0.0)


def _all_reduce_seconds(scenario: Scenario, num_bytes: float, latency_seconds: float) -> float:
    """Seconds of the scenario's all-reduce if all links, also those inside nodes, carry one byte per second."""
    links = {"bandwidth_bytes_per_second": 1.0, "latency_seconds": latency_seconds}
    nodes = scenario.cluster.nodes
    tiers = {"nodes": nodes.model_copy(update=links)} if nodes else {}
    cluster = scenario.cluster.model_copy(update=links | tiers)
    return collective_seconds(scenario.collective, num_bytes, cluster, scenario.topology)


def exchange_seconds(trace: Trace) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds of each step's exchange, without the warm-up: from the last worker's compute until all have the result.

    For a pipeline: the step's seconds less the compute seconds of all stages.
    """
    if isinstance(trace.scenario.policy, Pipeline):
        compute = trace.spans.of_kind(*COMPUTE_KINDS)
        seconds = np.diff(trace.updates.time_seconds, prepend=0.0)
        np.subtract.at(seconds, compute.step, compute.end_seconds - compute.start_seconds)
        return seconds[WARM_UP_STEPS:]
    ready = trace.spans.of_kind(*COMPUTE_KINDS)
    done = trace.spans.of_kind(SpanKind.ALL_REDUCE, SpanKind.RECEIVE)
    done = done.where(done.worker < trace.workers)
    steps = np.arange(WARM_UP_STEPS, trace.scenario.steps)
    applies = trace.spans.of_kind(SpanKind.APPLY)
    own_work = np.zeros(trace.scenario.steps)
    np.add.at(own_work, applies.step, applies.end_seconds - applies.start_seconds)
    return np.array(
        [
            done.end_seconds[done.step == step].max() - ready.end_seconds[ready.step == step].max() - own_work[step]
            for step in steps
        ]
    )
