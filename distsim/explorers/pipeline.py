"""Pipelines: how many micro-batches fill the stages, and how many of them must a stage hold in memory?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from distsim.errors import InputError
from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Pick, Slider, Switch
from distsim.explorers.explorer import Explorer
from distsim.figures import pipeline
from distsim.figures.captioned import Captioned, Row
from distsim.figures.wording import counted
from distsim.metrics import worker_seconds
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.pipeline import gpipe_step_seconds, micro_batches_held, step_bound_seconds
from distsim.units import show

STEPS = 2  # a step ends with a flush, so steps differ only in drawn times
LATENCY_US = 20.0
NAMES = {"gpipe": "GPipe", "1f1b": "1F1B"}
RUN, SIMULATED = "run", "simulated"
STEP, BUBBLES, SPEED = "step, mean (ms)", "bubbles (%)", "speed (samples/s)"
HELD, MEMORY = "held at most (micro-batches)", "their inputs (MiB)"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    micro_batches: pieces of a batch, of at least one sample each. schedule: all forwards before all backwards, or
    "1f1b": each backward as soon as it can. batch: in samples. sample_ms: forward and backward of one sample on one
    stage. activation_mib: sent to the next stage for one sample. slow: how many times longer the middle stage
    takes. cv: standard deviation / mean of the compute time, drawn for each stage and step. eager: sends do not wait
    for the next stage to be free.
    """

    stages: int = 4
    micro_batches: int = 8
    schedule: Literal["gpipe", "1f1b"] = "gpipe"
    batch: int = 32
    sample_ms: float = 4.0
    activation_mib: float = 0.25
    gbit_per_second: float = 10.0
    slow: float = 1.0
    cv: float = 0.0
    eager: bool = False
    seed: int = 7

    @property
    def micro_batch_mib(self) -> float:
        """MiB that a stage sends to the next stage for one micro-batch."""
        return self.activation_mib * self.batch / self.micro_batches


def scenarios(parameters: Parameters) -> tuple[Scenario]:
    """The scenario behind the figure. Raises InputError where there are more micro-batches than samples.

    >>> scenarios(Parameters(batch=16))[0].compute.mean_seconds
    0.064
    """
    if parameters.micro_batches > parameters.batch:
        rule = f"must be at most the {counted(parameters.batch, 'sample')} of a batch"
        cure = f"take {parameters.batch} or fewer, or a larger batch"
        raise InputError.of("micro-batches", parameters.micro_batches, rule, cure)
    compute = scenario_tables.compute(f"{parameters.sample_ms * parameters.batch:g} ms", parameters.cv)
    if parameters.slow > 1.0:
        compute["slow"] = {parameters.stages // 2: round(parameters.slow, 6)}
    table = {
        "name": f"{parameters.schedule}-{parameters.stages}-stages-{parameters.micro_batches}-micro-batches",
        "steps": STEPS,
        "seed": parameters.seed,
        "cluster": scenario_tables.cluster(parameters.stages, parameters.gbit_per_second, LATENCY_US),
        "compute": compute,
        "workload": {"batch": parameters.batch, "activation": f"{parameters.activation_mib * parameters.batch:g} MiB"},
        "policy": {"kind": "pipeline", "schedule": parameters.schedule, "micro_batches": parameters.micro_batches},
        "communication": {"kind": "ring", "sends": "eager" if parameters.eager else "rendezvous"},
    }
    return (Scenario.of(table),)


def explore(parameters: Parameters) -> Captioned:
    """The first step, stage by stage; and the mean step, simulated and by formula.

    Raises InputError for an impossible combination.

    >>> [row[BUBBLES] for row in explore(Parameters(stages=1)).table]
    [0.0, 0.0, 0.0]
    """
    (scenario,) = scenarios(parameters)
    trace = simulate(scenario)
    lanes = pipeline(trace)
    held = max(int(row["holds at most (micro-batches)"] or 0) for row in lanes.table)
    computes = float(worker_seconds(trace)["compute"].mean()) / STEPS
    table = [
        _row(SIMULATED, parameters, trace.total_seconds / STEPS, computes, held),
        *_formulas(scenario, parameters),
    ]
    return Captioned(lanes.figure, _sentence(table, parameters), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["schedule"].value = "1f1b"
    >>> view.shown.table[0][HELD]
    4
    """
    return Explorer(
        title=EXPLORERS["pipeline"].title,
        question="Each worker has one stage of the model, and a batch passes through the stages in micro-batches. "
        f"{STEPS} steps are simulated, and the first is drawn.",
        start=Parameters(),
        controls=[
            Slider("stages", "stages", "", 1, 8),
            Choice("micro_batches", "micro-batches", "", (1, 2, 4, 8, 16, 32)),
            Pick("schedule", "schedule", ("gpipe", "1f1b")),
        ],
        more=[
            Choice("batch", "batch", "samples", (8, 16, 32, 64, 128)),
            Slider("sample_ms", "compute time of a sample on a stage", "ms", 0.5, 10.0, 0.5),
            Choice("activation_mib", "activation of a sample", "MiB", (0.0, 0.0625, 0.25, 1.0, 4.0, 16.0)),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 400.0)),
            Slider("slow", "the middle stage takes", "times as long", 1.0, 3.0, 0.1),
            Slider("cv", "straggler spread, cv", "", 0.0, 1.0, 0.05),
            Switch("eager", "sends do not wait for the next stage"),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, BUBBLES, HELD),
        rows=(SIMULATED,),
    )


def _formulas(scenario: Scenario, parameters: Parameters) -> list[Row]:
    """GPipe's step with messages (1F1B has no such formula), and the shortest step of any schedule."""
    workload, cluster, count = scenario.workload, scenario.cluster, parameters.micro_batches
    whole = scenario.compute.mean_of_batch(workload.batch)
    both = [whole * scenario.compute.slow_factor(stage) / count for stage in range(parameters.stages)]
    backward = [workload.backward_share * seconds for seconds in both]
    forward = [seconds - after for seconds, after in zip(both, backward, strict=True)]
    message = cluster.latency_seconds + (workload.handed_on_bytes or 0.0) / count / cluster.bandwidth_bytes_per_second
    held = max(
        micro_batches_held(parameters.schedule, stage, parameters.stages, count) for stage in range(parameters.stages)
    )
    computes = count * sum(both) / parameters.stages
    gpipe = gpipe_step_seconds(forward, backward, count, message, scenario.communication.sends)
    return [
        _row("formula", parameters, gpipe if parameters.schedule == "gpipe" else None, computes, held),
        _row("formula, free messages", parameters, step_bound_seconds(forward, backward, count), computes, held),
    ]


def _row(name: str, parameters: Parameters, step: float | None, computes: float, held: int) -> Row:
    """step: of the whole pipeline, None without a formula. computes: a stage's compute in a step. Both in seconds."""
    return {
        RUN: name,
        STEP: None if step is None else 1e3 * step,
        BUBBLES: None if step is None else round(100.0 * (1.0 - computes / step), 9) + 0.0,
        SPEED: None if step is None else parameters.batch / step,
        HELD: held,
        MEMORY: held * parameters.micro_batch_mib,
    }


def _sentence(table: list[Row], parameters: Parameters) -> str:
    simulated, _, free = table
    stages = counted(parameters.stages, "stage")
    micro = counted(parameters.micro_batches, "micro-batch")
    took = show(float(simulated[STEP] or 0.0) / 1e3, "second")
    return (
        f"With {NAMES[parameters.schedule]} on {stages}, a batch of {counted(parameters.batch, 'sample')} in {micro} "
        f"takes {took} (mean of {STEPS} simulated steps). {float(simulated[BUBBLES] or 0.0):.0f} % of this time is "
        f"bubbles; with free messages and equal times it would be {float(free[BUBBLES] or 0.0):.0f} %. A stage holds "
        f"at most {counted(int(simulated[HELD] or 0), 'micro-batch')}, with "
        f"{float(simulated[MEMORY] or 0.0):.3g} MiB of inputs."
    )
