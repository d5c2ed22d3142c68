"""The exercises of chapter 06: what is right, and what is known to go wrong, both computed."""

from math import ceil

from distsim.course import Judged, exercise, function, number
from distsim.theory.overlap import accumulated_step_seconds, equal_buckets_step_seconds

SAMPLES, RANKS, BATCH = 1000, 6, 16
SHARE = ceil(SAMPLES / RANKS)
FORWARD, BACKWARD, ALL_REDUCE, PER_BUCKET = 30.0, 60.0, 48.0, 1.0


def step_ms(buckets: int, per_bucket: float = PER_BUCKET) -> float:
    """The step with so many equal buckets."""
    return equal_buckets_step_seconds(FORWARD, BACKWARD, ALL_REDUCE, buckets, per_bucket)


BEST = min(range(1, 200), key=step_ms)


def accumulated(forward: float, backward: float, exposed: float, accumulate: int) -> float:
    """The mean local step where one of `accumulate` communicates."""
    return accumulated_step_seconds(forward + backward, forward + backward + exposed, accumulate)


@exercise(
    points=1,
    hint="All ranks get equally many samples, and repeats fill up what is missing. Then each cuts its own into batches.",
    because=f"{SHARE} samples for each of {RANKS} ranks, of which {SHARE * RANKS - SAMPLES} are seen twice.",
)
def epoch_batches(answer: object) -> Judged:
    """How many batches one rank has in an epoch."""
    return number(
        answer,
        right=ceil(SHARE / BATCH),
        wrong={
            SHARE // BATCH: "The batch that is not full counts too: nobody asked to drop it.",
            SHARE / BATCH: "A batch that is not full is a batch.",
            SAMPLES / RANKS / BATCH: "A batch that is not full is a batch.",
            ceil(SAMPLES / BATCH): "So many has one process alone.",
            SHARE: "These are the samples of one rank.",
            ceil(SHARE / BATCH) * RANKS: "That is what all ranks have together.",
        },
    )


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
