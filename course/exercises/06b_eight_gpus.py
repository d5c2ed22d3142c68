"""The exercises of chapter 06b: what is right, and what is known to go wrong, both computed."""

from itertools import count

from distsim import Scenario, simulate
from distsim.course import Judged, design, exercise, number
from distsim.metrics import throughput_samples_per_second
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.scaling import share_of_speed_up, speed_up

GRADIENT_BYTES, GPUS, SECONDS = 4 * 25_557_032, 4, 0.030
INPUT_LIMIT = 3 * 1.3
GBIT_PER_SECOND = 8e-9 * ring_all_reduce_seconds(GRADIENT_BYTES, GPUS, 1.0, 0.0) / SECONDS
RING = share_of_speed_up("ring", 3.0, 4)
FEWEST = next(gpus for gpus in count(1) if speed_up("ring", RING, gpus) >= INPUT_LIMIT)

CHANGEABLE = (  # none is random, so that the check does not judge chance
    "cluster.bandwidth", "cluster.latency", "cluster.nodes", "compute.mean", "workload.gradient", "communication.kind",
    "communication.servers", "communication.colocated",
)  # fmt: skip
SCENARIO = Scenario.of(
    {
        "name": "ring",
        "steps": 20,
        "cluster": {"workers": 8, "bandwidth": "36 Gbit/s", "latency": "0 s"},
        "compute": {"mean": "100 ms"},
        "workload": {"gradient": "100 MB"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
)


def on(scenario: Scenario, workers: int) -> Scenario:
    """The scenario on so many workers, each of which has at most one colocated server."""
    changes = {"cluster.workers": workers}
    if scenario.communication.colocated:
        changes["communication.servers"] = min(scenario.communication.servers, workers)
    return scenario.replacing(changes)


def error_pct(scenario: Scenario) -> float:
    """The error of the speed-up on 8 workers, if it is predicted by a ring that fits the speed-up on 4 workers."""
    rate = {workers: throughput_samples_per_second(simulate(on(scenario, workers))) for workers in (1, 4, 8)}
    on_four, on_eight = rate[4] / rate[1], rate[8] / rate[1]
    predicted = speed_up("ring", share_of_speed_up("ring", min(on_four, 4.0), 4), 8)
    return 100 * (predicted / on_eight - 1)


@exercise(
    points=2,
    hint="A ring takes 2 (p - 1) / p times the bytes through each link; then mind bits and bytes.",
    because="So on the network of a workstation the exchange could be guilty after all. It depends on the model's bytes.",
)
def guilty_gbit(answer: object) -> Judged:
    """On which links the all-reduce takes 30 ms."""
    return number(
        answer,
        right=GBIT_PER_SECOND,
        relative=0.01,
        unit="Gbit/s",
        wrong={
            GBIT_PER_SECOND / 8: "That is in GB/s.",
            8e-9 * GRADIENT_BYTES / SECONDS: (
                "That sends the gradient once; a ring of four carries three quarters of it twice: once to add up, once to hand out."
            ),
            8e-9 * 2 * GRADIENT_BYTES / SECONDS: "Almost twice the bytes, but a rank's own part need not travel.",
            GBIT_PER_SECOND / 4: "A parameter in 32 bits has 4 bytes.",
        },
    )


@exercise(
    points=1,
    hint="Put one number of GPUs after the other into the ring's speed-up, until the loaders cannot follow.",
    because="All GPUs beyond that wait for their samples.",
)
def enough_gpus(answer: object) -> Judged:
    """From which number of GPUs on the input is the limit, if it is the input."""
    return number(
        answer,
        right=FEWEST,
        wrong={
            FEWEST - 1: f"So many reach {speed_up('ring', RING, FEWEST - 1):.2f}: the loaders still follow.",
            4: "Four reach three times: the loaders still follow.",
            8: "Eight wait for their samples, but fewer do already.",
            INPUT_LIMIT: "That is how many times one GPU's samples the loaders deliver.",
        },
    )


@exercise(
    points=3,
    hint="The prediction assumes that the loss grows from 4 workers to 8 as the bytes of a ring do. What grows faster?",
    because="The ring's formula without latency knows bytes alone, and a fit on one number cannot show what it leaves out.",
)
def misleading_ring(answer: object) -> Judged:
    """Changes of the scenario for which the prediction fails."""
    return design(
        answer,
        scenario=SCENARIO,
        changeable=CHANGEABLE,
        error_pct=error_pct,
        otherwise=lambda error, _: (
            "This change leaves the growth of the loss as it was."
            if abs(error) < 1.0
            else "This is the right direction. Make the change stronger, or change something else too."
        ),
    )
