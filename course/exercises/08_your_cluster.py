"""The exercises of chapter 08: what is right, and what is known to go wrong, both computed. None asks for a time."""

import numpy as np

from distsim import example, simulate, summary
from distsim.calibration import Calibration, far_beyond, fitted
from distsim.calibration.operations import oversubscription, terms
from distsim.course import Judged, choice, exercise, function
from distsim.course.design import FAR_PCT, design
from distsim.scenario import Scenario
from distsim.theory.collectives import ring_all_reduce_seconds

SIZES, WORKERS = (2.0**16, 2.0**19, 2.0**22), 2
RUNS = {  # workers and bytes of the runs that may test a calibration
    "2 workers, 4 MiB": (2, 2.0**22),
    "4 workers, 2 MiB": (4, 2.0**21),
    "64 workers, 256 MiB": (64, 2.0**28),
}


def fair_test() -> str:
    """The run that was not measured for the fit, and is not far beyond what was."""
    times = [("all_reduce", None, WORKERS, size, np.full(8, 1e-3 + size / 1e9)) for size in SIZES]
    known = Calibration(machine=fitted(times, cores=2))  # type: ignore[arg-type] # literals in a list
    (found,) = [
        name
        for name, (workers, size) in RUNS.items()
        if (workers, size) not in {(WORKERS, measured) for measured in SIZES}
        and not far_beyond(known, _ring(workers, size))
    ]
    return found


def _ring(workers: int, num_bytes: float) -> Scenario:
    return example("synchronous_ring").replacing(
        {"cluster.workers": workers, "workload.gradient": f"{num_bytes:.0f} B"}
    )


def link_bandwidth(
    workers: int, small_bytes: float, small_seconds: float, large_bytes: float, large_seconds: float
) -> float:
    """Bytes per second of a link, from two sizes of a ring's all-reduce."""
    carried = ring_all_reduce_seconds(large_bytes - small_bytes, workers, 1.0, 0.0)
    return carried / (large_seconds - small_seconds)


def crowded_ms(wait_ms: float, alone_ms: float, ranks: int, cores: int) -> float:
    """The step of workers that wait for their data and then compute on so many cores."""
    shared = oversubscription("compute", ranks, cores, emulated=False)
    return wait_ms + alone_ms * terms("compute", ranks, 1.0, shared)[0]


def lost_pct(predicted: dict[int, float], measured: dict[int, float]) -> float:
    """What taking the best prediction costs, in percent of the best measured rate."""
    chosen = max(predicted, key=lambda workers: predicted[workers])
    best = max(measured.values())
    return 100.0 * (best - measured[chosen]) / best


RATES = [
    ({1: 1000.0, 2: 1900.0, 4: 2400.0}, {1: 900.0, 2: 1700.0, 4: 1200.0}),
    ({1: 500.0, 2: 700.0, 3: 650.0}, {1: 1000.0, 2: 1500.0, 3: 1400.0}),
    ({1: 100.0, 8: 300.0}, {1: 200.0, 8: 160.0}),
]


@exercise(
    points=2,
    hint="Subtract the two times, so that what a message costs by itself falls out. How many bytes cross each link?",
    because="The latency follows: what is left of either time, divided by its rounds.",
)
def bandwidth(answer: object) -> Judged:
    """A function: the links' bandwidth from two measured all-reduces."""
    return function(
        answer,
        right=link_bandwidth,
        inputs=[(2, 65536, 1.2e-3, 4194304, 9e-3), (4, 65536, 3e-3, 4194304, 20e-3), (8, 1e6, 4e-3, 64e6, 0.3)],
        relative=1e-6,
        wrong={
            lambda _, small, short, large, long: (
                (large - small) / (long - short)
            ): "That is the gradient's bytes over the time; a ring sends most of them twice.",
            lambda _, small, short, large, long: large / long: (  # noqa: ARG005
                "That holds the cost of the messages themselves in it, and a ring sends more than the gradient's bytes."
            ),
            lambda workers, small, short, large, long: (
                2 * (workers - 1) * (large - small) / (long - short)
            ): "In each round a worker sends a share of the gradient, not all of it.",
            lambda workers, small, short, large, long: (  # noqa: ARG005
                ring_all_reduce_seconds(large, workers, 1.0, 0.0) / long
            ): "The large message's time also holds what messages cost by themselves.",
        },
    )


@exercise(
    points=1,
    hint="A test has to ask what the fit was not told, and what it claims to know.",
    because="It asks for another number of workers and another size, and both are near enough to what was measured.",
)
def fair(answer: object) -> Judged:
    """Which run tests a calibration?"""
    return choice(
        answer,
        right=fair_test(),
        options=list(RUNS),
        wrong={
            "2 workers, 4 MiB": "The line was drawn through this very point.",
            "64 workers, 256 MiB": "There distsim itself calls its prediction a guess: what would a miss tell you?",
        },
    )


@exercise(
    points=2,
    hint="Waiting takes no core. Computing does: how many ranks take turns on one of them?",
    because="That is why more workers than cores can still pay, as long as there is something to wait for.",
)
def crowded(answer: object) -> Judged:
    """A function: the step of workers that outnumber the cores."""
    return function(
        answer,
        right=crowded_ms,
        inputs=[(20, 4, 8, 2), (20, 4, 2, 8), (20, 4, 3, 2), (0, 30, 16, 4), (5, 5, 4, 4)],
        wrong={
            lambda wait, alone, ranks, cores: wait + alone * ranks / cores: (
                "Look at fewer ranks than cores: a rank cannot use more than one core."
            ),
            lambda wait, alone, ranks, cores: (
                (wait + alone) * max(1, ranks / cores)
            ): "Whoever waits for data leaves the core to others.",
            lambda wait, alone, ranks, cores: wait + alone: "That is a step of ranks with a core each.",  # noqa: ARG005
            lambda wait, alone, ranks, cores: wait + alone * max(1, -(-ranks // cores)): (
                "The kernel takes turns in milliseconds, so cores are shared evenly: three ranks on two need no two turns."
            ),
        },
    )


@exercise(
    points=2,
    hint="Whoever believes the prediction takes its best number of workers. What does that number really give?",
    because="A prediction may be far off in all its values and still choose right; only the order has to hold.",
)
def lost(answer: object) -> Judged:
    """A function: what a decision by prediction costs."""
    return function(
        answer,
        right=lost_pct,
        inputs=RATES,
        wrong={
            lambda predicted, measured: (
                100 * (max(predicted.values()) - max(measured.values())) / max(measured.values())
            ): "That compares the two best values: the error of a prediction, not the price of a choice.",
            lambda predicted, measured: (
                100
                * (max(measured.values()) - measured[max(predicted, key=predicted.__getitem__)])
                / measured[max(predicted, key=predicted.__getitem__)]
            ): "In percent of the best measured rate, not of the one that was chosen.",
            lambda predicted, measured: (
                (max(measured.values()) - measured[max(predicted, key=predicted.__getitem__)]) / max(measured.values())
            ): "That is a share; percent are asked for.",
        },
    )


RING = example("synchronous_ring").replacing(
    {
        "steps": 200,
        "seed": 11,
        "cluster": {"workers": 3, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        "compute": {"distribution": "lognormal", "mean": "30 ms", "cv": 0.3},
        "workload": {"gradient": "2 MiB"},
    }
)
TIMES = tuple(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "pauses", "slow"))


def by_median_error_pct(scenario: Scenario) -> float:
    """Steps times the median step, against the time of the whole simulated run."""
    trace = simulate(scenario)
    return 100.0 * (scenario.steps * summary(trace).step_seconds.median / float(trace.updates.time_seconds[-1]) - 1.0)


@exercise(
    points=3,
    hint="The median does not change if the longest steps become longer still. How often, and how much longer?",
    because="Half of the steps say nothing of the others. What a job costs is the mean step times the steps.",
)
def hidden(answer: object) -> Judged:
    """Compute times for which the median step hides a large part of a run."""
    return design(
        answer,
        scenario=RING,
        changeable=TIMES,
        error_pct=by_median_error_pct,
        far=lambda error: error < -FAR_PCT,
        otherwise=lambda error, changes: (
            "Here most steps are long, and the median is one of them. What if only a few are long?"
            if error > 0.0
            else "A worker that is always slow delays each step alike, and the median knows it."
            if "compute.slow" in changes and set(changes) <= {"compute.slow", "compute.mean"}
            else "This is the right direction, but a few long steps must cost more. How seldom and how long can they be?"
            if error < -5.0
            else "The median and the mean of these steps are near each other. Which few steps could cost much?"
        ),
    )
