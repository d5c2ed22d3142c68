"""The exercises of chapter 05b: what is right, and what is known to go wrong, both computed."""

from collections.abc import Callable

import numpy as np

import distsim
from distsim.calibration import WARM_UP_STEPS, exchange_seconds
from distsim.course import Judged, design, exercise, number
from distsim.errors import InputError
from distsim.scenario import Scenario
from distsim.theory.collectives import halving_doubling_all_reduce_seconds, ring_all_reduce_seconds

WORKERS, UNEVEN_WORKERS = 16, 24
LINK = {"bytes_per_second": 1.25e9, "latency_seconds": 50e-6}
CHANGEABLE = (
    *(f"cluster.{name}" for name in ("workers", "bandwidth", "latency", "nic")),
    *("compute.mean", "compute.cv", "workload.gradient"),
)


def parts(exchange: Callable[..., float], workers: int) -> tuple[float, float]:
    """Of an exchange: the seconds of all latencies, and the seconds of each byte."""
    return exchange(0.0, workers, **LINK), exchange(1.0, workers, LINK["bytes_per_second"], 0.0)


def even_kilobytes(exchange: Callable[..., float]) -> float:
    """The gradient of which an exchange's bytes take as long as its latencies."""
    latencies, of_a_byte = parts(exchange, WORKERS)
    return latencies / of_a_byte / 1e3


def crossing_kilobytes(workers: int, folded: float = 0.0) -> float:
    """The gradient for which ring and halving-doubling take equally long.

    folded: how many of the two transfers of whole vectors are forgotten.
    """
    ring, halving = parts(ring_all_reduce_seconds, workers), parts(halving_doubling_all_reduce_seconds, workers)
    latencies = ring[0] - (halving[0] - folded * LINK["latency_seconds"])
    return latencies / (halving[1] - folded / LINK["bytes_per_second"] - ring[1]) / 1e3


def formula_error_pct(scenario: Scenario) -> float:
    """The ring's formula against the simulated exchange, in percent of the simulated time."""
    cluster = scenario.cluster
    if cluster.workers < 2:
        raise InputError.of("cluster.workers", cluster.workers, "must be 2 or more", "one worker has no exchange")
    formula = ring_all_reduce_seconds(
        scenario.gradient_bytes, cluster.workers, cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    )
    return 100.0 * (formula / float(np.median(exchange_seconds(distsim.simulate(scenario)))) - 1.0)


@exercise(
    points=2,
    hint="Its formula has two terms: set them equal, and solve for the bytes.",
    because="Fewer rounds move the border down: smaller vectors are worth a faster network card.",
)
def even_size(answer: object) -> Judged:
    """The size at which the bytes of halving-doubling take as long as its latencies, in kB."""
    right = even_kilobytes(halving_doubling_all_reduce_seconds)
    message = LINK["bytes_per_second"] * LINK["latency_seconds"] / 1e3
    return number(
        answer,
        right=right,
        relative=0.01,
        unit="kB",
        wrong={
            even_kilobytes(ring_all_reduce_seconds): "That is the ring's border; here there are fewer rounds.",
            message: "That is the border of a single message.",
            right * (WORKERS - 1) / WORKERS: "A rank sends (N - 1) / N of its bytes each way, a little less than all.",
            8 * right: "10 Gbit/s are 1.25 GB/s: a byte has 8 bits.",
            right / 2: "Both terms have a factor of 2.",
            right * 2: "Both terms have a factor of 2.",
        },
    )


@exercise(
    points=2,
    hint="Write both times as latencies plus bytes: 46 rounds for the ring, and for the other 8 rounds and 2 transfers.",
    because="Among 32 ranks no size is large enough: there halving-doubling sends the ring's bytes in fewer rounds.",
)
def crossing_size(answer: object) -> Judged:
    """The size from which a ring of 24 ranks is faster than halving-doubling, in kB."""
    right = crossing_kilobytes(UNEVEN_WORKERS)
    one = crossing_kilobytes(UNEVEN_WORKERS, folded=1.0)
    of_a_byte = 2 / LINK["bytes_per_second"]
    rounds = 2 * (UNEVEN_WORKERS - 1) - 10
    return number(
        answer,
        right=right,
        relative=0.01,
        unit="kB",
        wrong={
            one: "The 8 ranks send their vectors, and they also receive the sum: two transfers.",
            8 * right: "10 Gbit/s are 1.25 GB/s: a byte has 8 bits.",
            rounds * LINK["latency_seconds"] / of_a_byte / 1e3: (
                "Among 16 ranks the exchange sends 15/16 of the bytes twice, and the ring sends 23/24 twice."
            ),
            WORKERS * LINK["latency_seconds"] * LINK["bytes_per_second"] / 1e3: "That is a border of the ring alone.",
        },
    )


@exercise(
    points=3,
    hint="The formula assumes that all links are equal. Which change makes one of them different?",
    because="One bandwidth stands for all links in the formula; the slowest link sets the pace of a ring.",
)
def changes(answer: object) -> Judged:
    """Changes to a scenario after which the ring's formula is off by more than 20 %."""
    return design(
        answer,
        scenario=distsim.example("synchronous_ring").replacing({"steps": WARM_UP_STEPS + 1}),
        changeable=CHANGEABLE,
        error_pct=formula_error_pct,
        otherwise=lambda _, changes: (
            "A link is different now. Does it delay the others, and does the time of the bytes count?"
            if "cluster.nic" in changes
            else "All links change together here, and the formula knows the new values."
        ),
    )
