"""The exercises of chapter 05: what is right, and what is known to go wrong, both computed."""

import numpy as np

from distsim import collectives, simulate, summary
from distsim.accuracy.published import PARAMETERS, WITHOUT_DDP_SECONDS
from distsim.collectives import Schedule
from distsim.course import Judged, design, exercise, function, number, sequence
from distsim.course.design import FAR_PCT
from distsim.scenario import Scenario
from distsim.theory.collectives import (
    all_reduce_bytes_per_worker,
    parameter_server_seconds,
)
from distsim.trace import COMPUTE_KINDS, Trace

RANKS = 4
NAMES = {
    "broadcast": collectives.broadcast(RANKS),
    "reduce": collectives.reduce(RANKS),
    "all-gather": collectives.all_gather(RANKS),
    "all-reduce": collectives.ring(RANKS),
    "scatter": collectives.scatter(RANKS),
    "gather": collectives.gather(RANKS),
}
# Of each job: how many ranks bring something, whether it is summed, and how many ranks want the whole result.
JOBS = [(1, False, RANKS), (RANKS, True, RANKS), (RANKS, True, 1), (RANKS, False, RANKS), (1, False, 0)]

GRADIENT_BYTES = 4.0 * PARAMETERS["ResNet-50"]
COMPUTE_SECONDS = WITHOUT_DDP_SECONDS["ResNet-50"]
WORKERS, MORE_WORKERS, BUSY = 16, 32, 0.8
ONE_SERVER = Scenario.of(
    {
        "name": "one-server",
        "steps": 600,
        "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"mean": "100 ms"},
        "workload": {"gradient": "25 MB"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "parameter_server"},
    }
)
CHANGEABLE = (
    *(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "slow", "pauses")),
    "workload.gradient",
)
LINK = {"bytes_per_second": 1.25e9, "latency_seconds": 50e-6}


def job(schedule: Schedule) -> tuple[int, bool, int]:
    """What a collective does, in the words of `JOBS`."""
    everything = frozenset((rank, chunk) for rank in range(RANKS) for chunk in range(schedule.chunks))
    start, end = schedule.start or everything, schedule.end or everything
    whole = [rank for rank in range(RANKS) if {(rank, chunk) for chunk in range(schedule.chunks)} <= end]
    summed = any(transfer.reduce for _, transfer in schedule.transfers())
    return len({rank for rank, _ in start}), summed, len(whole)


def jobs_done_by(**instead: str) -> tuple[str, ...]:
    """The collective of each job; `instead`: another one for some, with _ for the dash."""
    of = {job(schedule): name for name, schedule in NAMES.items()}
    changed = {right.replace("_", "-"): wrong.replace("_", "-") for right, wrong in instead.items()}
    return tuple(changed.get(of[asked], of[asked]) for asked in JOBS)


def busiest_bytes(num_bytes: float, workers: int, servers: int) -> float:
    """What the busiest direction of any NIC carries in one exchange."""
    up, down = collectives.parameter_server(workers, servers).bytes_per_link(num_bytes)
    return float(max(up.max(), down.max()))


def gbit_per_second(num_bytes: float, seconds: float) -> float:
    """The link that carries so many bytes in this time."""
    return 8 * num_bytes / seconds / 1e9


@exercise(
    points=2,
    hint="Ask of each job: who has something at the start, is it added up, and who needs the result?",
    because="A job says who needs what. How the bytes then travel, in a ring or in a tree, is another question.",
)
def jobs(answer: object) -> Judged:
    """The collective that does each of five jobs."""
    return sequence(
        answer,
        right=jobs_done_by(),
        wrong={
            jobs_done_by(reduce="all-reduce"): "That works, but in the third job only rank 0 needs the result.",
            jobs_done_by(all_gather="gather"): "In the fourth job every rank needs all of it.",
            jobs_done_by(all_gather="all-reduce"): "In the fourth job nothing is added up.",
            jobs_done_by(scatter="broadcast"): "In the last job no rank needs the shares of the others.",
        },
    )


@exercise(
    points=2,
    hint="Count both kinds of NIC: what does a server receive, and what does a worker send?",
    because="From as many servers as workers on, the workers' own NICs are the busiest, and more servers do not help.",
)
def busiest_link(answer: object) -> Judged:
    """A function: the bytes of the busiest link with several servers."""
    return function(
        answer,
        right=busiest_bytes,
        inputs=[(4e6, 4, 1), (1e8, 16, 4), (1e8, 16, 16), (4e6, 3, 12)],
        wrong={
            lambda num_bytes, workers, servers: num_bytes * workers / servers: (
                "That is a server's link. With more servers than workers another one carries more."
            ),
            lambda num_bytes, workers, servers: num_bytes * workers + 0 * servers: (
                "That is a single server; several have a part of the gradient each."
            ),
            lambda num_bytes, workers, servers: 2 * num_bytes * max(1, workers / servers): (
                "A NIC sends and receives at the same time: count one direction."
            ),
            lambda num_bytes, workers, servers: num_bytes * max(1, servers / workers): (
                "The other way round: more servers take bytes off each other's links."
            ),
        },
    )


@exercise(
    points=2,
    hint="How long may the exchange take, if compute is 80 % of the step, and how many bytes must go by then?",
    because="Or hide the exchange behind the computation, which is chapter 06.",
)
def needed_gbit(answer: object) -> Judged:
    """The bandwidth with which a ring leaves the GPUs busy for 80 % of the time."""
    exchange = COMPUTE_SECONDS * (1 / BUSY - 1)
    carried = all_reduce_bytes_per_worker(GRADIENT_BYTES, MORE_WORKERS)
    right = gbit_per_second(carried, exchange)
    return number(
        answer,
        right=right,
        relative=0.01,
        unit="Gbit/s",
        wrong={
            right / 8: "That is in GB/s: a byte has 8 bits.",
            gbit_per_second(
                carried, COMPUTE_SECONDS * (1 - BUSY)
            ): "80 % of the whole step is compute, not 80 % of 97.",
            gbit_per_second(carried, COMPUTE_SECONDS): "Then the exchange takes as long as the computation: 50 %.",
            gbit_per_second(GRADIENT_BYTES, exchange): "A worker sends nearly two gradients around a ring.",
            gbit_per_second(2 * MORE_WORKERS * GRADIENT_BYTES, exchange): "That is the link of a single server.",
        },
    )


def slowest_seconds(run: Trace) -> float:
    """The drawn compute time of each step's slowest worker, on average over the steps of this run."""
    computing = run.spans.of_kind(*COMPUTE_KINDS)
    seconds = np.zeros((run.scenario.steps, run.workers))
    np.add.at(seconds, (computing.step, computing.worker), computing.end_seconds - computing.start_seconds)
    return float(seconds.max(axis=1).mean())


def together_error_pct(scenario: Scenario) -> float:
    """The slowest worker and then the chapter's exchange through one server, against the simulated step.

    The prediction has the draws of the simulation, so that rare times make no error: only overlap does.
    """
    cluster, run = scenario.cluster, simulate(scenario)
    link = cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    exchange = parameter_server_seconds(scenario.gradient_bytes, cluster.workers, *link)
    return 100 * ((slowest_seconds(run) + exchange) / summary(run).step_seconds.mean - 1)


@exercise(
    points=3,
    hint="The formula lets all gradients leave at once. What does the server's link do if one worker is late?",
    because="While the late ones compute, the early gradients already travel: waiting and sending overlap.",
)
def never_together(answer: object) -> Judged:
    """Changes with which the exchange through a server is shorter than the formula says."""
    return design(
        answer,
        scenario=ONE_SERVER,
        changeable=CHANGEABLE,
        error_pct=together_error_pct,
        far=lambda error: error > FAR_PCT,
        otherwise=lambda error, _: (
            "All gradients leave nearly at once, or the exchange is a small part of the step."
            if abs(error) < 5.0
            else "This is the right direction. How much of the exchange can the late workers hide at most?"
        ),
    )
