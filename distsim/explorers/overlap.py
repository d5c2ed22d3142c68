"""Data parallel training in buckets: how much of the all-reduce hides behind backward, and what remains to wait for?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Slider, Switch
from distsim.explorers.explorer import Explorer
from distsim.figures import overlap
from distsim.figures.captioned import Captioned, Row
from distsim.figures.wording import signed
from distsim.metrics import worker_seconds
from distsim.policies import Ddp
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.overlap import (
    accumulated_step_seconds,
    bucket_ready_seconds,
    overlapped_step_seconds,
    step_with_perfect_overlap_seconds,
    step_without_overlap_seconds,
)
from distsim.trace import SpanKind, Trace
from distsim.units import show

STEPS = 48  # a multiple of every choice of `accumulate`
REAL_STEPS = 16  # such a multiple, too: exchanges of 100 MiB take a second each where eight ranks share two cores
FIRST_BUCKET_MIB = 1.0
RUN = "mean of a local step"
STEP, COMPUTE, EXPOSED, WAITING = "step (ms)", "compute (ms)", "exposed all-reduce (ms)", "waiting for others (ms)"
HIDDEN = "hidden all-reduce (%)"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    bucket_mib: a bucket leaves when it holds so many MiB of gradients; the first at 1 MiB, as in PyTorch.
    gbit_per_second: bandwidth of every NIC, each direction. accumulate: local steps per update. half: gradients
    travel in 16 bits instead of 32. gradient_mib: in MiB, in 32 bits. compute_ms: of one local step, a third of it
    forward. cv: standard deviation / mean of the compute time.
    """

    bucket_mib: float = 25.0
    gbit_per_second: float = 10.0
    accumulate: int = 1
    half: bool = False
    workers: int = 8
    layers: int = 16
    gradient_mib: float = 100.0
    compute_ms: float = 150.0
    latency_us: float = 50.0
    cv: float = 0.0
    seed: int = 7


def scenarios(parameters: Parameters) -> tuple[Scenario]:
    """The scenario behind the figure.

    >>> scenarios(Parameters(half=True))[0].policy.compression
    0.5
    """
    policy: dict[str, Any] = {
        "kind": "ddp",
        "bucket": f"{parameters.bucket_mib:g} MiB",
        "first_bucket": f"{min(parameters.bucket_mib, FIRST_BUCKET_MIB):g} MiB",
        "accumulate": parameters.accumulate,
    }
    if parameters.half:
        policy["compression"] = 0.5
    table = {
        "name": f"buckets-of-{parameters.bucket_mib:g}-MiB",
        "steps": STEPS,
        "seed": parameters.seed,
        "cluster": scenario_tables.cluster(parameters.workers, parameters.gbit_per_second, parameters.latency_us),
        "compute": scenario_tables.compute(f"{parameters.compute_ms:g} ms", parameters.cv),
        "workload": {"gradient": f"{parameters.gradient_mib:g} MiB", "layers": parameters.layers},
        "policy": policy,
        "communication": {"kind": "ring"},
    }
    return (Scenario.of(table),)


def explore(parameters: Parameters) -> Captioned:
    """The first step that communicates, of worker 0; and the mean local step, simulated and by formula.

    >>> [row[RUN] for row in explore(Parameters()).table]
    ['simulated', 'formula', 'formula, no overlap', 'formula, perfect overlap']
    """
    (scenario,) = scenarios(parameters)
    trace = simulate(scenario)
    table = [_simulated(trace), *_formulas(scenario)]
    return Captioned(overlap(trace).figure, _sentence(table, parameters), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["bucket_mib"].value = 1000.0
    >>> view.changed.value.count("bucket size from 25 to 1000")
    1
    """
    return Explorer(
        title=EXPLORERS["overlap"].title,
        question="Gradients travel around a ring in buckets. A bucket leaves as soon as its gradients are ready, the "
        "last layer's bucket first. The figure shows the first step in which worker 0 sends.",
        start=Parameters(),
        controls=[
            Choice("bucket_mib", "bucket size", "MiB", (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 1000.0)),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 400.0)),
            Choice("accumulate", "local steps to an update", "", (1, 2, 4, 8, 16)),
        ],
        more=[
            Switch("half", "gradients in 16 bits"),
            Slider("workers", "workers", "", 1, 64),
            Slider("layers", "layers", "", 1, 64),
            Choice("gradient_mib", "gradient in 32 bits", "MiB", (10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 1000.0)),
            Slider("compute_ms", "compute time of a step", "ms", 10.0, 500.0, 10.0),
            Choice("latency_us", "latency", "us", (0.0, 5.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)),
            Slider("cv", "straggler spread, cv", "", 0.0, 1.0, 0.05),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, EXPOSED, WAITING, HIDDEN),
        real=lambda parameters: scenarios(parameters)[0].replacing({"steps": REAL_STEPS}),
    )


def _simulated(trace: Trace) -> Row:
    parts = {part: float(seconds.mean()) / STEPS for part, seconds in worker_seconds(trace).items()}
    reduces = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    all_reduce = float((reduces.end_seconds - reduces.start_seconds).sum()) / trace.workers / STEPS
    return _row("simulated", parts["compute"], parts["communication"], all_reduce, parts["waiting"])


def _formulas(scenario: Scenario) -> list[Row]:
    """By formula, for equal workers: these buckets, no overlap, and perfect overlap."""
    policy, workload = scenario.policy, scenario.workload
    assert isinstance(policy, Ddp), "as written above"
    compute = scenario.compute.mean_of_batch(workload.batch)
    backward = workload.backward_share * compute
    forward = compute - backward
    buckets = policy.buckets(workload.layer_bytes)
    sizes = [policy.compression * sum(workload.layer_bytes[layer] for layer in bucket) for bucket in buckets]
    link = (scenario.cluster.workers, scenario.cluster.bandwidth_bytes_per_second, scenario.cluster.latency_seconds)
    reduces = np.array([ring_all_reduce_seconds(size, *link) for size in sizes])
    ready = bucket_ready_seconds(forward, backward, [len(bucket) for bucket in buckets])
    together = float(reduces.sum())
    whole = {
        "formula": overlapped_step_seconds(ready, reduces),
        "formula, no overlap": step_without_overlap_seconds(forward, backward, together),
        "formula, perfect overlap": step_with_perfect_overlap_seconds(forward, backward, together),
    }
    rows = []
    for name, communicating in whole.items():
        step = accumulated_step_seconds(compute, max(compute, communicating), policy.accumulate)
        rows.append(_row(name, compute, step - compute, together / policy.accumulate, waiting=0.0))
    return rows


def _row(name: str, compute: float, exposed: float, all_reduce: float, waiting: float) -> Row:
    """A row of the table. All arguments are in seconds per local step."""
    hidden = 100.0 * (1.0 - exposed / all_reduce) if all_reduce else None
    cells = {
        STEP: 1e3 * (compute + exposed + waiting),
        COMPUTE: 1e3 * compute,
        EXPOSED: 1e3 * exposed,
        WAITING: 1e3 * waiting,
        HIDDEN: hidden,
    }
    # Sums of many times leave about 1e-14 instead of 0.
    return {RUN: name} | {name: None if cell is None else round(cell, 9) + 0.0 for name, cell in cells.items()}


def _sentence(table: list[Row], parameters: Parameters) -> str:
    simulated, formula, apart, _ = (float(row[STEP] or 0.0) / 1e3 for row in table)
    exposed, hidden = float(table[0][EXPOSED] or 0.0) / 1e3, table[0][HIDDEN]
    text = f"A local step takes {show(simulated, 'second')}"
    if hidden is not None:
        text += f", of which {show(exposed, 'second')} are exposed all-reduce"
        text += f". {float(hidden):.0f} % of the all-reduce is hidden"
    text += f". The formula says {show(formula, 'second')}, and {show(apart, 'second')} without overlap"
    if parameters.cv:
        change = signed(100.0 * (simulated / formula - 1.0), "%")
        text += f". It holds for workers that are alike; stragglers change the time by {change}"
    return f"{text}."
