"""Right and wrong answers to every exercise of the course, as students would give them, by chapter.

right: what has full points. wrong: an answer, and the words of the feedback meant for it. They are numbers, not the
expressions that judge them: a change of an exercise's meaning is seen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answers:
    """Of one exercise."""

    right: Sequence[object]
    wrong: Sequence[tuple[object, str]] = field(default=())


ANSWERS: dict[str, dict[str, Answers]] = {
    "00_tour": {
        "eight_workers": Answers(
            right=[80.5, 80.51, 80.4],
            wrong=[
                (71.5, "That is the step of four workers"),
                (143, "Workers compute at the same time"),
                (56.6, "the step waits for the slowest"),
                (73.9, "must travel"),
                (79.3, "The ring has eight workers"),
                (0.0805, "asked for in ms"),
                ("80.5", "without quotes"),
            ],
        ),
        "no_variation": Answers(
            right=[55.3, 55.33],
            wrong=[
                (71.5, "That is the step with variation"),
                (50, "must travel"),
                (66.2, "Without variation"),
                (60, "When all workers are equally fast"),
            ],
        ),
        "error_pct": Answers(
            right=[
                lambda predicted, measured: 100 * (predicted - measured) / measured,
                lambda predicted, measured: (predicted / measured - 1) * 100,
            ],
            wrong=[
                (lambda predicted, measured: 100 * (measured - predicted) / measured, "sign is the other way round"),
                (lambda predicted, measured: 100 * abs(predicted - measured) / measured, "Too short and too long"),
                (lambda predicted, measured: 100 * (predicted - measured) / predicted, "Percent of the measurement"),
                (lambda predicted, measured: predicted / measured - 1, "That is a share"),
                (lambda predicted: predicted, "in percent of the measurement"),
                (17.0, "must be a function"),
            ],
        ),
        "backup_gain": Answers(
            right=[7.88, 7.9, 8.0],
            wrong=[
                (-7.88, "what is saved is positive"),
                (13.8, "compare like with like"),
                (82.1, "That is a step without a backup"),
                (74.2, "That is a step with a backup"),
                (1.0, "Simulate"),
            ],
        ),
    },
    "01_why_distribute": {
        "bloom_gb": Answers(
            right=[2816, 2820.0],
            wrong=[
                (704, "parameters alone"),
                (1408, "numbers of its own"),
                (2112, "Momentum"),
                (2622.6, "in GiB"),
                (2.816, "asked for in GB"),
                (100, "For each parameter"),
            ],
        ),
        "fine_tuning": Answers(
            right=["model or pipeline parallelism", "Model or pipeline parallelism"],
            wrong=[
                ("one device", "compare it with 16 GB"),
                ("data parallelism", "every device holds the whole model"),
                ("model and data parallelism", "how long would the work take"),
                ("train where the data are", "Nothing keeps"),
                ("a larger disk", "Choose one of"),
            ],
        ),
        "best_workers": Answers(
            right=[58, 57, 58.0],
            wrong=[
                (49, "10 Gbit/s"),
                (63, "too fast"),
                (62, "too fast"),
                (128, "doubling is too coarse"),
                (4, "8 bits are a byte"),
            ],
        ),
        "price": Answers(
            right=[lambda speed_up, devices: devices / speed_up],
            wrong=[
                (lambda speed_up, devices: speed_up / devices, "That is the efficiency"),
                (lambda _, devices: devices, "a shorter time than one"),
                (lambda speed_up, _: 1 / speed_up, "all devices are paid for it"),
                (lambda speed_up: speed_up, "So many devices"),
                (2.05, "must be a function"),
            ],
        ),
        "hospitals": Answers(
            right=["train where the data are"],
            wrong=[
                ("one device", "How do the scans get"),
                ("data parallelism", "dealt out freely"),
                ("model or pipeline parallelism", "Does the model not fit?"),
                ("model and data parallelism", "is it slow"),
            ],
        ),
    },
    "02_one_step": {
        "epoch_steps": Answers(
            right=[23, 23.0],
            wrong=[
                (22, "The samples left over"),
                (22.5, "How many samples does one update take"),
                (1437 / 64, "The samples left over"),
                (180, "one worker alone"),
                (45, "with four workers"),
                (9, "counted in updates"),
                ("23", "without quotes"),
            ],
        ),
        "effective_gradient": Answers(
            right=[
                lambda gradients, samples: sum(g * s for g, s in zip(gradients, samples, strict=True)) / sum(samples),
                lambda gradients, samples: sum(s / sum(samples) * g for g, s in zip(gradients, samples, strict=True)),
            ],
            wrong=[
                (lambda gradients, samples: sum(gradients) / len(samples), "That is the mean of the workers"),
                (
                    lambda gradients, samples: sum(g * s for g, s in zip(gradients, samples, strict=True)),
                    "That is the sum over all samples",
                ),
                (
                    lambda gradients, samples: (
                        sum(g * s for g, s in zip(gradients, samples, strict=True)) / len(samples)
                    ),
                    "the mean is over samples",
                ),
                (lambda gradients, samples: sum(gradients) + 0 * sum(samples), "the sum of the workers' gradients"),
                (lambda gradients: gradients[0], "every sample counts as much"),
                (2.5, "must be a function"),
            ],
        ),
        "rate_for_sums": Answers(
            right=[0.075, 3 / 40],
            wrong=[
                (0.6, "every step would be too long"),
                (4.8, "sums are larger than means"),
                (0.009375, "already a mean"),
                (0.15, "how many times the mean"),
            ],
        ),
        "distance_ratio": Answers(
            right=[1, 1.0],
            wrong=[(0, "Nothing pulls"), (6.98, "divide it"), (0.5, "moved by the same vector"), (2, "same vector")],
        ),
        "crowded_server": Answers(
            right=[6, 6.0],
            wrong=[(5, "still less than twice"), (12, "both ways"), (5.5, "Twice the computation means"), (4, "grows")],
        ),
    },
    "03_stragglers": {
        "half_waiting": Answers(
            right=[4, 4.0],
            wrong=[(3, "not yet half"), (5, "so do fewer"), (16, "m times H_N"), ("4", "without quotes")],
        ),
        "paused_step": Answers(
            right=[
                lambda workers, mean, probability, pause: mean + (1 - (1 - probability) ** workers) * pause,
                lambda workers, mean, probability, pause: (
                    mean * (1 - probability) ** workers + (mean + pause) * (1 - (1 - probability) ** workers)
                ),
            ],
            wrong=[
                (lambda _, mean, probability, pause: mean + probability * pause, "mean time of one worker"),
                (lambda workers, mean, probability, pause: mean + workers * probability * pause, "one after the other"),
                (lambda workers, mean, likely, pause: mean + (1 - likely) ** workers * pause, "nobody pauses"),
                (lambda *given: given[1] + given[3], "a step in which somebody pauses"),
                (lambda *given: given[3], "How probable is it"),
                (0.5, "must be a function"),
            ],
        ),
        "break_even": Answers(
            right=[4.52, 4.5155],
            wrong=[
                (0.2215, "it is above 1"),
                (1.333, "how much larger a batch"),
                (5.26, "all of them takes"),
                (1.165, "first twelve"),
                (4.094, "not a difference"),
                (2, "updates times seconds per update"),
            ],
        ),
        "slow_for_good": Answers(
            right=["none", " None"],
            wrong=[
                ("all", "only those of the current step"),
                ("one in three", "look at when it arrives"),
                ("half", "Choose one of"),
            ],
        ),
    },
}
