"""The exercises of chapter 11: what is right, and what is known to go wrong, both computed."""

import math

from distsim.course import Judged, exercise, function, number
from distsim.learning.rates import scaled

SAMPLES, DEVICES, BATCH = 50_000, 8, 32
UPDATES = math.ceil(math.ceil(SAMPLES / DEVICES) / BATCH)


@exercise(
    points=1,
    hint="How many samples does each device have, and how many updates does it make of them?",
    because="All devices together take 256 samples for an update.",
)
def updates_of_an_epoch(answer: object) -> Judged:
    """The updates of an epoch on several devices."""
    return number(
        answer,
        right=UPDATES,
        wrong={
            math.ceil(SAMPLES / BATCH): "That is one device alone.",
            SAMPLES / DEVICES: "That is the number of samples of a device.",
            SAMPLES // (DEVICES * BATCH): "The last samples make an update, too.",
            SAMPLES / (DEVICES * BATCH): "There is no part of an update.",
            DEVICES * math.ceil(SAMPLES / BATCH): "More devices make fewer updates, not more.",
        },
    )


OLD, NEW, RATE = 2 * 32, 8 * 64, 0.05
RATE_OF_EIGHT = scaled(RATE, NEW, OLD)


@exercise(
    points=2,
    hint="Compare the effective batches, not the numbers of devices.",
    because="The effective batch grows by a factor of 8: four times as many devices, and twice the samples of each.",
)
def rate_of_eight(answer: object) -> Judged:
    """The rate by linear scaling."""
    return number(
        answer,
        right=RATE_OF_EIGHT,
        relative=0.005,
        wrong={
            RATE * 8 / 2: "The samples of a device have changed, too.",
            RATE * 64 / 32: "The number of devices has changed, too.",
            RATE: "Nobody scales the rate for you.",
            scaled(RATE, NEW, OLD, "square_root"): "That is the rule for Adam.",
            RATE * OLD / NEW: "A larger batch allows a larger rate.",
        },
    )


ADDED, SHARE = 1.5, 0.02
LEAST_MS = ADDED / SHARE - ADDED


@exercise(
    points=2,
    hint="The whole is the update and what the framework adds.",
    because=f"The whole takes {ADDED / SHARE:g} ms, of which 2 % are {ADDED:g} ms.",
)
def least_update_ms(answer: object) -> Judged:
    """The time of an update at which an overhead has this share."""
    return number(
        answer,
        right=LEAST_MS,
        relative=0.005,
        unit="ms",
        wrong={
            ADDED / SHARE: "That is the whole, with the framework.",
            ADDED * SHARE: "Divide by the share.",
            LEAST_MS / 1000: "That is in seconds.",
            ADDED / 2: "The share is 2 %, not 2.",
        },
    )


TESTED, RANKS = 1000, 24
TWICE = math.ceil(TESTED / RANKS) * RANKS - TESTED


@exercise(
    points=2,
    hint="How many samples does each rank get, if all get equally many? How many is that together?",
    because="The sampler begins anew at the first samples until the ranks have equally many.",
)
def counted_twice(answer: object) -> Judged:
    """The samples that pad the last rank's share."""
    return number(
        answer,
        right=TWICE,
        wrong={
            TESTED % RANKS: "So many are left after equal shares. How many are missing to one more for each rank?",
            0: "1,000 is no multiple of 24.",
            RANKS: "Not every rank needs a sample more.",
            math.ceil(TESTED / RANKS): "That is the number of samples of a rank.",
        },
    )


@exercise(
    points=3,
    hint="What would one process count that had all samples?",
    because="A mean of the ranks' accuracies gives a rank with few samples the same weight as one with many.",
)
def accuracy(answer: object) -> Judged:
    """A function of two lists: the right answers and the samples of each rank."""
    return function(
        answer,
        right=lambda right, seen: sum(right) / sum(seen),
        inputs=[([9, 1], [10, 2]), ([5, 5, 5], [10, 10, 10]), ([0, 7], [3, 7]), ([4], [8])],
        wrong={
            lambda right, seen: sum(r / s for r, s in zip(right, seen, strict=True)) / len(seen): (
                "A mean of the ranks' accuracies. Have all ranks seen equally many?"
            ),
            lambda right, seen: right[0] / seen[0]: "That is rank 0 alone.",
            lambda right, _: sum(right) / len(right): "That is a number of answers, not a share.",
            lambda right, seen: sum(seen) / sum(right): "The other way round.",
        },
    )
