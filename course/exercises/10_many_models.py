"""The exercises of chapter 10: what is right, and what is known to go wrong, both computed."""

from math import ceil, sqrt

from distsim.course import Judged, exercise, number
from distsim.search.clock import simulated_search
from distsim.search.job import search_seconds
from distsim.search.sources import Halving, Queue
from distsim.theory.search import best_of, least_search_seconds, trials_against_data_parallel

TRIALS, WORKERS, SPEED_UP = 11, 4, 3.0
GROUPED, ALL_WORKERS, SPEED_UPS = 5, 8, {1: 1.0, 2: 1.8, 4: 3.4, 8: 5.0}  # speed-up by workers of a trial
HOURS = (6.0, 5.0, 4.0, 3.0, 2.0)
HALVED, RUNGS = 27, (1, 3, 9)
EQUAL, SHARE, SAMPLES = 16, 0.9, 400


def time_in_groups(workers: int) -> float:
    """In multiples of a trial on one worker."""
    return ceil(GROUPED / (ALL_WORKERS // workers)) / SPEED_UPS[workers]


def hours(order: tuple[float, ...]) -> float:
    """Until the last of the trials is done, on two workers that take them in this order."""
    queue = Queue([{"hours": each} for each in order], epochs=1)
    return search_seconds(simulated_search(queue, 2, lambda job: (job.settings["hours"], 0.0)))


def epochs() -> int:
    """Of all jobs of successive halving; which trials are the best does not matter."""
    source = Halving([{"number": number} for number in range(HALVED)], least=RUNGS[0], most=RUNGS[-1])
    return sum(one.job.epochs for one in simulated_search(source, 1, lambda job: (1.0, job.settings["number"])))


DEVIATION = 100 * sqrt(SHARE * (1 - SHARE) / SAMPLES)
BEST_GROUP = min(SPEED_UPS, key=time_in_groups)


@exercise(
    points=1,
    hint="In how many turns do four workers do eleven trials? How many trials would one worker do in the other time?",
    because="In the last turn one worker is idle. With twelve trials the ratio would be 4 / 3.",
)
def ratio_of_eleven(answer: object) -> Judged:
    """One after the other over four at a time."""
    return number(
        answer,
        right=trials_against_data_parallel(TRIALS, WORKERS, SPEED_UP),
        relative=0.005,
        wrong={
            WORKERS / SPEED_UP: "Eleven trials are no whole number of turns: the last turn is not full.",
            1 / trials_against_data_parallel(TRIALS, WORKERS, SPEED_UP): "That is the other ratio.",
            TRIALS / SPEED_UP: "That is the time of one way, in trials. Divide it by the turns of the other.",
            TRIALS
            / WORKERS
            / SPEED_UP: "You divided by the workers and by the speed-up. They belong to different ways.",
        },
    )


@exercise(
    points=2,
    hint="How many groups are there? In how many turns do they do five trials? How long is a turn?",
    because="Two groups of four take three turns. A worker for each trial takes one turn, but three workers are idle.",
)
def workers_of_a_group(answer: object) -> Judged:
    """The size of equal groups that ends soonest."""
    return number(
        answer,
        right=BEST_GROUP,
        tolerance=0,
        wrong={
            1: f"Then {ALL_WORKERS - GROUPED} workers are idle, and the trials take as long as one trial alone.",
            2: "Four groups take two turns for five trials: in the second turn three groups are idle.",
            8: "All eight on one trial: five turns, and each is only five times as fast.",
        },
    )


@exercise(
    points=2,
    hint="Give the trials away one by one: the next trial goes to the worker that is free first.",
    because=f"That is {hours(HOURS) / least_search_seconds(HOURS, 2) - 1:.0%} more than the best. "
    "Graham's bound for two workers is 7/6.",
)
def hours_longest_first(answer: object) -> Judged:
    """The end of the last trial, longest first."""
    return number(
        answer,
        right=hours(HOURS),
        wrong={
            least_search_seconds(HOURS, 2): "That is the best division. The rule does not look so far ahead.",
            hours(HOURS[::-1]): "That is shortest first.",
            sum(HOURS): "That is one worker alone.",
            max(HOURS): "The worker with the longest trial is not the last to end.",
        },
    )


@exercise(
    points=2,
    hint="Count how many trials are in each round, and by how many epochs each of them goes on.",
    because=f"All {HALVED} trials to the end would be {HALVED * RUNGS[-1]} epochs.",
)
def epochs_of_halving(answer: object) -> Judged:
    """The epochs of successive halving."""
    return number(
        answer,
        right=epochs(),
        tolerance=0,
        wrong={
            sum(HALVED // 3**place * rung for place, rung in enumerate(RUNGS)): "A trial goes on from its checkpoint.",
            HALVED * RUNGS[-1]: "That is all trials to the end.",
            sum(HALVED // 3**place for place in range(3)): "That is the number of jobs. How many epochs has each?",
            epochs() + RUNGS[-1]: "Nothing follows the round of nine epochs.",
        },
    )


@exercise(
    points=2,
    hint="What is the standard deviation of one measurement? By how many of them is the best of 16 too high?",
    because=f"Twice as good a measurement needs four times as many samples: {4 * SAMPLES}.",
)
def points_of_luck(answer: object) -> Judged:
    """How much too good the best of equal trials looks."""
    return number(
        answer,
        right=best_of(EQUAL) * DEVIATION,
        tolerance=0.02,
        wrong={
            DEVIATION: "That is the error of one trial. By how many of them is the best of 16 too high?",
            best_of(EQUAL): "That is in standard deviations.",
            best_of(EQUAL) * DEVIATION / 100: "That is a share. Give percentage points.",
            best_of(EQUAL) * DEVIATION / sqrt(EQUAL): "The best is one trial, not the mean of sixteen.",
            100 * SHARE + best_of(EQUAL) * DEVIATION: "That is what the best measures. By how much is it too high?",
        },
    )
