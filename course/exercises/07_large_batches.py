"""The exercises of chapter 07: what is right, and what is known to go wrong, both computed."""

from math import ceil, sqrt

from distsim import example, simulate, summary
from distsim.course import Judged, design, exercise, number
from distsim.course.design import Changes
from distsim.learning.rates import effective_batch
from distsim.scenario import Scenario
from distsim.theory.noise_scale import fitted, updates_to_target

SAMPLES, EPOCHS, WORKERS, BATCH = 50_000, 90, 12, 32
SMALL, LARGE, ASKED = (16, 1500), (64, 600), 256  # two batches and their updates, and a third batch
NOISE_SCALE, OF_A_WORKER, COMPUTE_MS, LINK_MS = 200.0, 8, 100.0, 10.0
LEAST_UPDATES, MINUTES = 1000.0, 17.0
CLUSTER = example("synchronous_ring").replacing(
    {
        "cluster.bandwidth": "1 Gbit/s",
        "compute": {"per_sample": "10 ms"},
        "workload": {"gradient": "25 MB", "batch": 8},
        "steps": 3,
    }
)
CHANGEABLE = ("cluster.workers", "workload.batch", "communication.kind", "communication.servers")


def updates_of(samples: int, epochs: int, batch: int) -> int:
    """Every epoch ends with a batch that may be smaller."""
    return epochs * ceil(samples / batch)


def seconds_with_a_server(workers: int) -> float:
    """In multiples of the least updates."""
    updates = float(updates_to_target(1.0, NOISE_SCALE, workers * OF_A_WORKER))
    return updates * (COMPUTE_MS + workers * LINK_MS) / 1000.0


UPDATES = updates_of(SAMPLES, EPOCHS, WORKERS * BATCH)
LEAST, SCALE = fitted(*zip(SMALL, LARGE, strict=True))
FASTEST = min(range(1, 1000), key=seconds_with_a_server)


@exercise(
    points=1,
    hint="First count the updates of one epoch. Its last batch is smaller.",
    because="One worker alone would make about twelve times as many, in batches of 32.",
)
def updates_of_run(answer: object) -> Judged:
    """The updates of a run of whole epochs."""
    return number(
        answer,
        right=UPDATES,
        tolerance=0,
        wrong={
            updates_of(SAMPLES, EPOCHS, BATCH): "An update averages the samples of all workers.",
            EPOCHS * (SAMPLES // (WORKERS * BATCH)): "The last batch of an epoch makes an update, too.",
            ceil(EPOCHS * SAMPLES / (WORKERS * BATCH)): "The last batch of every epoch is smaller, so round up there.",
            round(EPOCHS * SAMPLES / (WORKERS * BATCH)): "The last batch of every epoch is smaller, so round up there.",
            UPDATES // EPOCHS: "That is one epoch.",
        },
    )


@exercise(
    points=2,
    hint="The updates are a + b / m. Two runs give a and b. What is a, and what is b, in the formula of section 5?",
    because=f"The noise scale is {SCALE:.0f}. Four times the batch saves {1 - LARGE[1] / SMALL[1]:.0%} of the updates "
    f"first, and then {1 - updates_to_target(LEAST, SCALE, ASKED) / LARGE[1]:.0%}.",
)
def updates_at_256(answer: object) -> Judged:
    """The updates in batches of a third size."""
    return number(
        answer,
        right=float(updates_to_target(LEAST, SCALE, ASKED)),
        wrong={
            LARGE[1] / 4: "That holds only far below the noise scale.",
            LARGE[1] ** 2 / SMALL[1]: "The second factor of four saves less than the first.",
            LEAST: "That is the least number, with all samples.",
            SCALE: "That is the noise scale.",
        },
    )


@exercise(
    points=2,
    hint="Put the four numbers into the formula for N, with both times in one unit.",
    because=f"Twice as many workers take {seconds_with_a_server(2 * FASTEST) / seconds_with_a_server(FASTEST) - 1:.0%} "
    "longer: the links of the server are full.",
)
def fastest_workers(answer: object) -> Judged:
    """The number of workers of a server that gets there first."""
    return number(
        answer,
        right=FASTEST,
        tolerance=0.2,  # without rounding to whole workers
        wrong={
            NOISE_SCALE * COMPUTE_MS / (OF_A_WORKER * LINK_MS): "Take the square root.",
            sqrt(NOISE_SCALE / OF_A_WORKER): "A step also computes and exchanges: that sets the price of a worker.",
            sqrt(NOISE_SCALE * COMPUTE_MS / LINK_MS): "That is right for one sample per worker.",
            sqrt(NOISE_SCALE * LINK_MS / (OF_A_WORKER * COMPUTE_MS)): "The more a step computes, the more workers pay.",
            FASTEST - 1: "Nearly: one more worker is a little faster.",
            sqrt(NOISE_SCALE * OF_A_WORKER * COMPUTE_MS / LINK_MS): "That is the effective batch. How many workers?",
            NOISE_SCALE / OF_A_WORKER: "With so many workers the batch is as large as the noise scale.",
        },
    )


def minutes_to_the_loss(scenario: Scenario) -> float:
    """The least updates for the scenario's effective batch, on the clock of its simulated steps."""
    step = summary(simulate(scenario)).step_seconds.mean
    batch = effective_batch(scenario.cluster.workers, scenario.workload.batch)
    return float(updates_to_target(LEAST_UPDATES, NOISE_SCALE, batch)) * step / 60.0


def too_slow(changes: Changes) -> str:
    """The feedback where the loss is reached too late."""
    changed = CLUSTER.replacing(dict(changes))
    if changed.communication.kind != "ring":
        return "How long does the exchange of each step take? Which link is full, and what would share its load?"
    if changed.cluster.workers < 13:
        return "On a ring the exchange hardly grows with the workers. So take more of them."
    if changed.cluster.workers * changed.workload.batch < NOISE_SCALE:
        return "Most of a step is the exchange. Larger batches need fewer steps."
    return "Above the noise scale larger batches save few updates, but each step computes for longer."


@exercise(
    points=3,
    hint="A step has two parts. Which one grows with the batch of a worker, and which one hardly grows with the workers?",
    because="Where the exchange is slow, the best batch lies above the noise scale: the samples that it wastes are cheap.",
)
def small_cluster(answer: object) -> Judged:
    """A cluster that reaches a loss in time."""
    return design(
        answer,
        scenario=CLUSTER,
        changeable=CHANGEABLE,
        error_pct=minutes_to_the_loss,
        told=lambda minutes: f"the loss is reached after {minutes:.1f} minutes",
        far=lambda minutes: minutes < MINUTES,
        otherwise=lambda _, changes: too_slow(changes),
        most_workers=16,
    )
