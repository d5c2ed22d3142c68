"""The exercises of chapter 06: what is right, and what is known to go wrong, both computed."""

from distsim import simulate, summary
from distsim.course import Judged, design, exercise, function, number
from distsim.course.design import FAR_PCT
from distsim.scenario import Scenario
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.overlap import accumulated_step_seconds, equal_buckets_step_seconds

BUCKETS, COMPUTE_SECONDS = 4, 0.04
SCENARIO = Scenario.of(
    {
        "name": "ddp",
        "steps": 25,
        "cluster": {"workers": 2, "bandwidth": "5 Gbit/s", "latency": "100 us"},
        "compute": {"mean": f"{COMPUTE_SECONDS} s"},
        "workload": {"gradient": "16 MiB", "layers": 8},
        "policy": {"kind": "ddp", "bucket": "4 MiB", "first_bucket": "4 MiB"},
        "communication": {"kind": "ring"},
    }
)
FORWARD, BACKWARD, ALL_REDUCE, PER_BUCKET = 30.0, 60.0, 48.0, 1.0


def step_ms(buckets: int, per_bucket: float = PER_BUCKET) -> float:
    """The step with so many equal buckets."""
    return equal_buckets_step_seconds(FORWARD, BACKWARD, ALL_REDUCE, buckets, per_bucket)


BEST = min(range(1, 200), key=step_ms)


def accumulated(forward: float, backward: float, exposed: float, accumulate: int) -> float:
    """The mean local step where one of `accumulate` communicates."""
    return accumulated_step_seconds(forward + backward, forward + backward + exposed, accumulate)


@exercise(
    points=2,
    hint="Try equal_buckets_step_seconds with one bucket after the other, and look for the smallest.",
    because="With fewer the last bucket is larger than it need be; with more the buckets' own cost comes out of hiding.",
)
def best_buckets(answer: object) -> Judged:
    """How many equal buckets make the step shortest."""
    longest = BACKWARD / PER_BUCKET
    return number(
        answer,
        right=BEST,
        wrong={
            1: "With one bucket nothing leaves before backward is over.",
            round(longest**0.5): "That is best where communication takes longer than backward; here it is the shorter.",
            longest: "So many cost more than they hide.",
            step_ms(BEST): "That is how long the step takes; how many buckets is it?",
        },
    )


@exercise(
    points=2,
    hint="Of k local steps, k - 1 have forward and backward alone.",
    because="Accumulating divides what is exposed, and nothing else.",
)
def no_sync_step(answer: object) -> Judged:
    """A function: the mean local step under no_sync."""
    return function(
        answer,
        right=accumulated,
        inputs=[(0.03, 0.06, 0.02, 1), (0.03, 0.06, 0.02, 4), (0.1, 0.2, 0.5, 8), (0.1, 0.2, 0.0, 3)],
        relative=1e-6,
        wrong={
            lambda forward, backward, exposed, accumulate: (  # noqa: ARG005
                forward + backward + exposed
            ): "That is the step in which all is sent, and it is one of many.",
            lambda forward, backward, exposed, accumulate: (
                (forward + backward + exposed) / accumulate
            ): "Forward and backward are in every step.",
            lambda forward, backward, exposed, accumulate: (
                accumulate * (forward + backward) + exposed
            ): "That is what all steps of one update take together.",
            lambda forward, backward, exposed, accumulate: (  # noqa: ARG005
                forward + backward
            ): "One step in so many does send.",
        },
    )


def four_buckets_error_pct(scenario: Scenario) -> float:
    """The chapter's formula with four buckets against the median simulated step."""
    cluster = scenario.cluster
    link = cluster.workers, cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    bucket = ring_all_reduce_seconds(scenario.gradient_bytes / BUCKETS, *link)
    forward, backward = COMPUTE_SECONDS / 3, 2 * COMPUTE_SECONDS / 3
    formula = equal_buckets_step_seconds(forward, backward, BUCKETS * bucket, BUCKETS)
    return 100 * (formula / summary(simulate(scenario)).step_seconds.median - 1)


@exercise(
    points=3,
    hint="The formula cuts the gradient into four. Where may DDP cut it?",
    because="A layer's gradient leaves whole, so a bucket is never smaller than a layer, and one layer hides nothing.",
)
def hides_nothing(answer: object) -> Judged:
    """Changes with which a step is longer than the formula for four equal buckets says."""
    return design(
        answer,
        scenario=SCENARIO,
        changeable=("workload.layers", "cluster.workers", "cluster.bandwidth", "cluster.latency"),
        error_pct=four_buckets_error_pct,
        far=lambda error: error < -FAR_PCT,
        otherwise=lambda error, changes: (
            "The network still fills four equal buckets."
            if abs(error) < 1.0 and "workload.layers" not in changes
            else "How many buckets are there now, and is their exchange a large part of the step?"
        ),
    )
