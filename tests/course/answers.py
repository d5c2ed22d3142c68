"""Right and wrong answers to every exercise of the course, as students would give them, by chapter.

right: what has full points. wrong: an answer, and the words of the feedback meant for it. They are numbers, not the
expressions that judge them: a change of an exercise's meaning is seen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Answers:
    """Of one exercise."""

    right: Sequence[object]
    wrong: Sequence[tuple[object, str]] = field(default=())


def book(order: Sequence[int]) -> float:
    """The mean number of arrivals between each one and the one before of the same worker, or the start."""
    return sum(_between(order)) / len(order)


def book_without_the_first(order: Sequence[int]) -> float:
    """The same without each worker's first."""
    found = [between for place, between in enumerate(_between(order)) if order[place] in order[:place]]
    return sum(found) / len(found)


def _between(order: Sequence[int]) -> list[int]:
    last: dict[int, int] = {}
    found = []
    for place, worker in enumerate(order):
        found.append(place - last.get(worker, -1) - 1)
        last[worker] = place
    return found


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
                ((73.94, 6.57), "not several"),
            ],
        ),
        "no_variation": Answers(
            right=[55.3, 55.33],
            wrong=[
                (71.5, "That is the step with variation"),
                (50, "must travel"),
                (66.2, "Without variation"),
                (60, "When all workers are equally fast"),
                (55, "rounded too far"),
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
        "unlucky": Answers(
            right=[
                {"compute.pauses": {"probability": 0.001, "duration": "20 s"}},
                {"compute.pauses": {"probability": 1e-4, "duration": "200 s"}, "compute.cv": 0.5},
            ],
            wrong=[
                ({}, "near the mean of all draws"),
                ({"compute.cv": 0.6}, "near the mean of all draws"),
                ({"compute.slow": {1: 2.0}}, "knows how slow"),
                ({"compute.cv": 50}, "still rarer, and longer"),
                ({"compute.pauses": {"probability": 0.1, "duration": "100 ms"}}, "20 pause on average"),
                ({"compute.pauses": {"probability": 1e-4, "duration": "1 s"}}, "too short"),
                ({"steps": 1}, "must stay as it is"),
                ({"compute.mean": "0 ms"}, "no scenario"),
                ("pauses", "must be a dictionary"),
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
                (2800, "rounded too far"),
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
        "promised": Answers(
            right=[
                {"compute.distribution": "lognormal", "compute.cv": 0.5},
                {"compute.slow": {2: 2.0}},
                {"cluster.nic": {"1": {"up": "5 Gbit/s"}}},
                {"compute.pauses": {"probability": 0.003, "duration": "5 s"}},  # 60 steps would meet none
                {"compute.pauses": {"probability": 1e-5, "duration": "2000 s"}},
            ],
            wrong=[
                ({}, "The formula holds"),
                ({"compute.slow": {2: 1.3}}, "Make the difference larger"),
                ({"cluster.nic": {0: {"up": "9 Gbit/s"}}}, "Make the difference larger"),
                ({"compute.slow": {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}}, "promises too little"),
                ({"cluster.bandwidth": "1 Gbit/s"}, "must stay as it is"),
                ({"compute.slow": {9: 2.0}}, "no scenario"),
                ("compute.cv", "must be a dictionary"),
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
                lambda gradients, samples: torch.tensor(samples) / sum(samples) @ torch.tensor(gradients),
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
        "distance_ratio": Answers(
            right=[1, 1.0],
            wrong=[(0, "Nothing pulls"), (6.98, "divide it"), (0.5, "moved by the same vector"), (2, "same vector")],
        ),
        "step_design": Answers(
            right=[
                {"compute.slow": {0: 2.0}},
                {"compute.distribution": "exponential"},
                {"cluster.nic": {"server": {"down": "1 Gbit/s"}}},
            ],
            wrong=[
                ({}, "The formula holds here"),
                ({"cluster.workers": 16, "cluster.bandwidth": "1 Gbit/s"}, "The formula holds here"),
                ({"compute.slow": {0: 1.1}}, "hardly changes the median step"),
                ({"cluster.nic": {0: {"up": "9 Gbit/s"}}}, "hardly changes the median step"),
                ({"compute.distribution": "lognormal", "compute.cv": 0.5}, "grow without a limit"),
                ({"compute.slow": {0: 0.01}}, "grow without a limit"),
                ({"communication.kind": "ring"}, "must stay as it is"),
                ({"cluster.workers": 1000}, "at most 64"),
                ({"compute.cv": "much"}, "no scenario"),
                ("compute.slow", "must be a dictionary"),
            ],
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
        "late_again": Answers(
            right=[
                {"compute.pauses": {"probability": 0.03, "duration": "500 ms"}},
                {"compute.pauses": {"probability": 0.001, "duration": "10 s"}},
                {"compute.distribution": "pareto", "compute.alpha": 1.3},
            ],
            wrong=[
                ({}, "catch up too soon"),
                ({"compute.distribution": "lognormal", "compute.cv": 0.3}, "catch up too soon"),
                ({"compute.pauses": {"probability": 0.5, "duration": "10 ms"}}, "catch up too soon"),
                ({"compute.distribution": "exponential"}, "not late enough"),
                ({"compute.pauses": {"probability": 0.0002, "duration": "2 s"}}, "hardly anybody paused"),
                ({"compute.slow": {3: 3.0}}, "which workers are always slow"),
                ({"policy.cancel": True}, "must stay as it is"),
                ({"compute.cv": 0.5}, "no scenario"),
                (0.2, "must be a dictionary"),
            ],
        ),
    },
    "04_asynchronous": {
        "mixed_rate": Answers(
            right=[130, 130.0, 129.9],
            wrong=[
                (91.4, "mean of the eight times"),
                (40, "waited for the slowest"),
                (120, "deliver, too"),
                (160, "Two of them are slow"),
                (16.25, "any worker"),
                (7.69, "in ms"),
                (0.13, "in a millisecond"),
                (100, "each of the eight"),
            ],
        ),
        "staleness_of": Answers(
            right=[lambda order: book(order), lambda order: book(tuple(order))],
            wrong=[
                (lambda order: book(order) + 1, "Its own update"),
                (lambda order: book_without_the_first(order), "first gradient, too"),
                (lambda order: max(order), "a long run of all workers"),
                (lambda order: len(order), "last answered"),
                (0.75, "must be a function"),
            ],
        ),
        "slow_staleness": Answers(
            right=[21, 21.0, 20.9],
            wrong=[
                (7, "most of them are of fast workers"),
                (3, "one other worker"),
                (24, "its own gradient stale"),
                (22, "does not count"),
                (6.33, "of the others are"),
                (14, "seven others make"),
            ],
        ),
        "smallest_bound": Answers(
            right=[5, 5.0],
            wrong=[
                (4, "not yet enough"),
                (6, "a smaller one"),
                (7, "right for sixteen workers"),
                (0, "all workers wait"),
                (2, "one bound after"),
            ],
        ),
        "crowded": Answers(
            right=[
                {"cluster.bandwidth": "1 Gbit/s", "cluster.workers": 16},
                {"workload.gradient": "64 MiB"},
                {"cluster.latency": "30 ms"},
            ],
            wrong=[
                ({"cluster.workers": 6}, "do not meet often enough"),
                ({}, "do not meet often enough"),
                ({"compute.mean": "4 ms"}, "Change only"),
                ({"cluster.workers": 64}, "at most 16"),
                ({"cluster.workers": -1}, "at least 5"),
                ({"cluster.workers": 4, "cluster.bandwidth": "1 Gbit/s"}, "at least 5"),
                ("16 workers", "must be a dictionary"),
            ],
        ),
    },
    "04b_does_it_learn": {
        "largest_rate": Answers(
            right=[136.5, 136.48],
            wrong=[
                (125.6, "How many others"),
                (2000, "fresh gradients"),
                (0.1365, "a curvature of 1"),
                (166.7, "not as 1 / 12"),
                (-1394.0, "radians"),
                (0.0001365, "The steeper"),
                (200, "take turns"),
            ],
        ),
        "workers_for_momentum": Answers(
            right=[10, 10.0],
            wrong=[(9, "mean staleness"), (0.9, "How many workers"), (16, "Which N")],
        ),
        "touched_pct": Answers(
            right=[1.494, 1.49],
            wrong=[
                (1.308, "other workers only"),
                (1.4286, "an approximation"),
                (10, "have been changed"),
                (28.03, "10 % unchanged"),
                (0.01494, "in %"),
                (7, "solve the formula"),
            ],
        ),
        "equal_floor_rate": Answers(
            right=[0.00639, 0.00639],
            wrong=[
                (0.00625, "Nearly"),
                (0.05, "eight times as high"),
                (0.0016, "That is the floor"),
                (0.4, "lifts the floor"),
                (0.01, "equal"),
            ],
        ),
        "more_fresh": Answers(
            right=[
                {"compute.pauses": {"probability": 0.01, "duration": "5 s"}},
                {"compute.slow": {0: 4.0, 1: 4.0, 2: 4.0, 3: 4.0}},
                {"compute.slow": {0: 0.25}},
                {"compute.distribution": "lognormal", "compute.cv": 3.0},
            ],
            wrong=[
                ({}, "As many gradients are fresh"),
                ({"compute.slow": {0: 3.0}}, "the right direction"),
                ({"compute.pauses": {"probability": 0.01, "duration": "0.5 s"}}, "the right direction"),
                ({"compute.pauses": {"probability": 1e-6, "duration": "50000 s"}}, "frequent enough"),
                ({"compute.distribution": "constant"}, "rarer"),
                ({"compute.distribution": "lognormal", "compute.cv": 0.5}, "rarer"),
                ({"cluster.workers": 4}, "must stay as it is"),
                ({"compute.slow": {9: 2.0}}, "no scenario"),
                (0.5, "must be a dictionary"),
            ],
        ),
    },
    "05_communication": {
        "jobs": Answers(
            right=[
                ["broadcast", "all-reduce", "reduce", "all-gather", "scatter"],
                ("Broadcast", "all_reduce", "reduce", "all gather", "scatter"),
            ],
            wrong=[
                (["broadcast", "all-reduce", "all-reduce", "all-gather", "scatter"], "only rank 0 needs"),
                (["broadcast", "all-reduce", "reduce", "gather", "scatter"], "every rank needs all of it"),
                (["broadcast", "all-reduce", "reduce", "all-reduce", "scatter"], "nothing is added up"),
                (["broadcast", "all-reduce", "reduce", "all-gather", "broadcast"], "the shares of the others"),
                (["scatter", "reduce"], "who needs the result"),
                ("broadcast", "must be a list"),
            ],
        ),
        "busiest_link": Answers(
            right=[
                lambda num_bytes, workers, servers: num_bytes * max(1, workers / servers),
                lambda num_bytes, workers, servers: max(num_bytes, workers * num_bytes / servers),
            ],
            wrong=[
                (lambda num_bytes, workers, servers: num_bytes * workers / servers, "another one carries more"),
                (lambda num_bytes, workers, _: num_bytes * workers, "a single server"),
                (
                    lambda num_bytes, workers, servers: 2 * num_bytes * max(1, workers / servers),
                    "count one direction",
                ),
                (lambda num_bytes, workers, servers: num_bytes * max(1, servers / workers), "The other way round"),
                (lambda num_bytes: num_bytes, "what does a server receive"),
                (4e6, "must be a function"),
            ],
        ),
        "needed_gbit": Answers(
            right=[65.3, 65.34],
            wrong=[
                (8.17, "a byte has 8 bits"),
                (81.7, "not 80 % of 97"),
                (16.3, "50 %"),
                (33.7, "nearly two gradients"),
                (2158, "a single server"),
                (100, "How long may the exchange take"),
            ],
        ),
        "never_together": Answers(
            right=[
                {"compute.distribution": "exponential"},
                {"compute.slow": {0: 5.0}},
                {"compute.distribution": "lognormal", "compute.cv": 0.5},
                {"compute.pauses": {"probability": 0.1, "duration": "0.5 s"}},
            ],
            wrong=[
                ({}, "leave nearly at once"),
                ({"compute.slow": {0: 3.0}, "workload.gradient": "1 MB"}, "a small part of the step"),
                ({"compute.slow": {0: 20.0}}, "How much of the exchange"),
                (
                    {"compute.pauses": {"probability": 1e-5, "duration": "2000 s"}, "workload.gradient": "1 kB"},
                    "a small part of the step",
                ),
                ({"compute.distribution": "pareto", "compute.alpha": 1.1}, "a small part of the step"),
                ({"cluster.workers": 4}, "must stay as it is"),
                ({"workload.gradient": "-1 B"}, "no scenario"),
                (3, "must be a dictionary"),
            ],
        ),
    },
    "05b_fewer_rounds": {
        "even_size": Answers(
            right=[267, 266.7],
            wrong=[
                (1000, "the ring's border"),
                (62.5, "a single message"),
                (250, "a little less than all"),
                (2133, "a byte has 8 bits"),
                (133.3, "a factor of 2"),
                (266_667, "asked for in kB"),
                (16, "solve for the bytes"),
            ],
        ),
        "crossing_size": Answers(
            right=[1149, 1148.9],
            wrong=[
                (2413, "two transfers"),
                (9191, "a byte has 8 bits"),
                (1125, "15/16 of the bytes"),
                (1000, "the ring alone"),
                (1_148_936, "asked for in kB"),
                (16, "46 rounds"),
            ],
        ),
        "changes": Answers(
            right=[
                {"cluster.nic": {"2": {"up": "5 Gbit/s"}}},
                {"cluster.nic": {"0": {"down": "1 Gbit/s"}}, "cluster.latency": "100 us"},
                {"cluster.workers": 16, "cluster.nic": {"9": {"up": "2 Gbit/s", "down": "2 Gbit/s"}}},
            ],
            wrong=[
                ({"cluster.latency": "1 ms", "compute.cv": 0.5}, "the formula knows the new values"),
                ({}, "All links change together"),
                ({"cluster.nic": {"2": {"up": "20 Gbit/s"}}}, "Does it delay the others"),
                ({"cluster.nic": {"2": {"up": "5 Gbit/s"}}, "workload.gradient": "1 kB"}, "the time of the bytes"),
                ({"communication.kind": "tree"}, "must stay as it is"),
                ({"cluster.workers": 1000}, "at most 64 workers"),
                ({"cluster.workers": 1}, "must be 2 or more"),
                ({"cluster.latency": "0 s", "workload.gradient": "0 B"}, "takes no time at all"),
                ({"cluster.nic": {"2": {"up": "soon"}}}, "This is no scenario"),
                ("cluster.nic", "must be a dictionary"),
            ],
        ),
    },
    "06_ddp_inside": {
        "best_buckets": Answers(
            right=[12, 12.0],
            wrong=[
                (1, "nothing leaves before backward is over"),
                (8, "here it is the shorter"),
                (60, "cost more than they hide"),
                (95.0, "how long the step takes"),
                (4, "Try equal_buckets_step_seconds"),
            ],
        ),
        "no_sync_step": Answers(
            right=[
                lambda forward, backward, exposed, accumulate: forward + backward + exposed / accumulate,
                lambda f, b, e, k: ((k - 1) * (f + b) + f + b + e) / k,
            ],
            wrong=[
                (lambda f, b, e, _: f + b + e, "the step in which all is sent"),
                (lambda f, b, e, k: (f + b + e) / k, "Forward and backward are in every step"),
                (lambda f, b, e, k: k * (f + b) + e, "all steps of one update"),
                (lambda f, b, _, __: f + b, "does send"),
                (0.5, "must be a function"),
            ],
        ),
        "hides_nothing": Answers(
            right=[{"workload.layers": 1}, {"workload.layers": 1, "cluster.bandwidth": "6 Gbit/s"}],
            wrong=[
                ({}, "still fills four equal buckets"),
                ({"workload.layers": 2}, "How many buckets"),
                ({"workload.layers": 1, "cluster.bandwidth": "1 Gbit/s"}, "a large part of the step"),
                ({"policy.bucket": "16 MiB"}, "must stay as it is"),
                ({"workload.layers": 0}, "no scenario"),
                (1, "must be a dictionary"),
            ],
        ),
    },
    "06b_eight_gpus": {
        "guilty_gbit": Answers(
            right=[40.89, 40.9, 41.0],
            wrong=[
                (5.11, "in GB/s"),
                (27.26, "three quarters of it twice"),
                (54.52, "Almost twice the bytes"),
                (10.22, "has 4 bytes"),
                (40890, "Look at the unit"),
            ],
        ),
        "enough_gpus": Answers(
            right=[6, 6.0],
            wrong=[
                (5, "So many reach 3.69"),
                (4, "Four reach three times"),
                (8, "fewer do already"),
                (3.9, "the loaders deliver"),
                (7, "Put one number of GPUs after the other"),
            ],
        ),
        "misleading_ring": Answers(
            right=[
                {"cluster.latency": "20 ms"},
                {"communication.kind": "parameter_server"},
                {"communication.kind": "tree"},
                {"communication.kind": "parameter_server", "communication.colocated": True, "communication.servers": 4},
                {"cluster.nodes": {"per_node": 4, "bandwidth": "300 GB/s", "latency": "2 us"}},
            ],
            wrong=[
                ({}, "leaves the growth of the loss"),
                ({"cluster.bandwidth": "1 Gbit/s"}, "leaves the growth of the loss"),
                ({"cluster.latency": "1 ms"}, "Make the change stronger"),
                ({"cluster.workers": 16}, "must stay as it is"),
                ({1: 2}, "must stay as it is"),
                ({"cluster.bandwith": "1 Gbit/s"}, "Change only cluster.bandwidth"),
                ({"compute.pauses": {"probability": 0.05, "duration": "300 ms"}}, "Change only cluster.bandwidth"),
                ({"communication.kind": "halving_doubling"}, "leaves the growth of the loss"),
                ({"cluster.latency": "soon"}, "no scenario"),
                ("cluster.latency", "a dictionary of changes"),
            ],
        ),
    },
    "07_large_batches": {
        "updates_of_run": Answers(
            right=[11790, 90 * 131],
            wrong=[
                (140670, "all workers"),
                (11700, "makes an update, too"),
                (11719, "round up there"),
                (131, "one epoch"),
                (1000, "First count"),
            ],
        ),
        "updates_at_256": Answers(
            right=[375, 375.0],
            wrong=[
                (150, "far below"),
                (240, "saves less"),
                (300, "least number"),
                (64, "the noise scale"),
                (500, "give a and b"),
            ],
        ),
        "fastest_workers": Answers(
            right=[16, 15.8],
            wrong=[
                (250, "square root"),
                (5, "price of a worker"),
                (44.7, "one sample per worker"),
                (1.58, "more workers pay"),
                (25, "as large as the noise scale"),
                (15, "a little faster"),
                (126.5, "effective batch"),
                (12, "one unit"),
            ],
        ),
        "small_cluster": Answers(
            right=[
                {"cluster.workers": 16, "workload.batch": 24},
                {"cluster.workers": 16, "workload.batch": 16},
                {"cluster.workers": 14, "workload.batch": 32},
                {"cluster.workers": 16, "workload.batch": 24, "communication.kind": "halving_doubling"},
                {
                    "cluster.workers": 16,
                    "workload.batch": 24,
                    "communication.kind": "parameter_server",
                    "communication.servers": 16,
                },
            ],
            wrong=[
                ({}, "take more of them"),
                ({"cluster.workers": 8, "workload.batch": 32}, "take more of them"),
                ({"cluster.workers": 12, "workload.batch": 24}, "take more of them"),
                ({"cluster.workers": 16}, "Larger batches need fewer steps"),
                ({"cluster.workers": 16, "workload.batch": 64}, "computes for longer"),
                (
                    {"cluster.workers": 16, "workload.batch": 24, "communication.kind": "parameter_server"},
                    "Which link is full",
                ),
                ({"cluster.workers": 16, "workload.batch": 24, "communication.kind": "tree"}, "Which link is full"),
                ({"cluster.workers": 17}, "at most 16 workers"),
                ({"cluster.bandwidth": "10 Gbit/s"}, "must stay as it is"),
                ({"workload.batch": 0}, "no scenario"),
            ],
        ),
    },
    "08_your_cluster": {
        "bandwidth": Answers(
            right=[
                lambda n, small, short, large, long: 2 * (n - 1) / n * (large - small) / (long - short),
                lambda n, small, short, large, long: (large - small) * (2 - 2 / n) / (long - short),
            ],
            wrong=[
                (lambda _, small, short, large, long: (large - small) / (long - short), "sends most of them twice"),
                (lambda *given: given[3] / given[4], "more than the gradient's bytes"),
                (
                    lambda n, small, short, large, long: 2 * (n - 1) * (large - small) / (long - short),
                    "a share of the gradient",
                ),
                (lambda *given: 2 * (given[0] - 1) / given[0] * given[3] / given[4], "also holds what messages cost"),
                (lambda *given: given[4], "Subtract the two times"),
                (1e9, "must be a function"),
            ],
        ),
        "fair": Answers(
            right=["4 workers, 2 MiB", "4 Workers, 2 MiB"],
            wrong=[
                ("2 workers, 4 MiB", "through this very point"),
                ("64 workers, 256 MiB", "calls its prediction a guess"),
                ("none", "Choose one of"),
            ],
        ),
        "crowded": Answers(
            right=[
                lambda wait, alone, ranks, cores: wait + alone * max(1, ranks / cores),
                lambda wait, alone, ranks, cores: wait + (alone if ranks <= cores else alone * ranks / cores),
            ],
            wrong=[
                (lambda wait, alone, ranks, cores: wait + alone * ranks / cores, "more than one core"),
                (lambda wait, alone, ranks, cores: (wait + alone) * max(1, ranks / cores), "leaves the core to others"),
                (lambda *given: given[0] + given[1], "a core each"),
                (
                    lambda wait, alone, ranks, cores: wait + alone * max(1, -(-ranks // cores)),
                    "shared evenly",
                ),
                (lambda *given: given[0], "Waiting takes no core"),
                (36, "must be a function"),
            ],
        ),
        "lost": Answers(
            right=[
                lambda predicted, measured: (
                    100 * (1 - measured[max(predicted, key=predicted.get)] / max(measured.values()))
                ),
            ],
            wrong=[
                (
                    lambda predicted, measured: 100 * (max(predicted.values()) / max(measured.values()) - 1),
                    "the price of a choice",
                ),
                (
                    lambda predicted, measured: (
                        100 * (max(measured.values()) / measured[max(predicted, key=predicted.get)] - 1)
                    ),
                    "not of the one that was chosen",
                ),
                (
                    lambda predicted, measured: (
                        1 - measured[max(predicted, key=predicted.get)] / max(measured.values())
                    ),
                    "percent are asked for",
                ),
                (lambda predicted, measured: 0 * len(predicted) * len(measured), "What does that number really give"),
                (20.0, "must be a function"),
            ],
        ),
        "hidden": Answers(
            right=[
                {"compute.pauses": {"probability": 0.01, "duration": "1 s"}},
                {"compute.cv": 2.0},
            ],
            wrong=[
                ({}, "near each other"),
                ({"compute.cv": 0.35}, "near each other"),
                ({"compute.cv": 1.0}, "few long steps must cost more"),
                ({"compute.slow": {1: 3.0}}, "each step alike"),
                (
                    {"compute.slow": {0: 2.0}, "compute.pauses": {"probability": 0.01, "duration": "0.2 s"}},
                    "must cost more",
                ),
                ({"compute.pauses": {"probability": 0.5, "duration": "1 s"}}, "only a few"),
                ({"steps": 2}, "must stay as it is"),
                ({"compute.cv": -1.0}, "no scenario"),
                (0.2, "must be a dictionary"),
            ],
        ),
    },
    "09_models_too_big": {
        "state_gb": Answers(
            right=[20.125, 20.1],
            wrong=[(7, "stage 3"), (33.25, "stage 1"), (112, "every GPU"), (16, "Which of the 16 bytes")],
        ),
        "fewest_micro_batches": Answers(
            right=[63],
            wrong=[(70, "whole step"), (72, "one place less"), (62, "10.14 %"), (10, "solve it for m")],
        ),
        "gpipe_over_1f1b": Answers(
            right=[10.7, 64 / 6],
            wrong=[
                (8, "first stage"),
                (12.8, "number 0"),
                (9.14, "second stage"),
                (6, "1F1B holds"),
                (0.09375, "inverse"),
                (64, "GPipe holds"),
            ],
        ),
        "tensor_ms": Answers(
            right=[39.2],
            wrong=[
                (19.6, "two backward"),
                (9.8, "one all-reduce"),
                (22.4, "twice the vector"),
                (44.8, "2 x 7/8"),
                (313.6, "not bits"),
            ],
        ),
        "late_pipeline": Answers(
            right=[{"compute.slow": {1: 2.0}}, {"cluster.bandwidth": "100 Mbit/s"}, {"cluster.latency": "10 ms"}],
            wrong=[
                ({}, "still right"),
                ({"compute.slow": {1: 1.2}}, "stronger"),
                ({"policy.micro_batches": 2}, "must stay"),
            ],
        ),
    },
    "10_many_models": {
        "ratio_of_eleven": Answers(
            right=[1.222, 11 / 9],
            wrong=[
                (1.333, "the last turn is not full"),
                (0.818, "the other ratio"),
                (3.667, "time of one way"),
                (0.9167, "belong to different ways"),
                (2.0, "In how many turns"),
            ],
        ),
        "workers_of_a_group": Answers(
            right=[4],
            wrong=[(1, "3 workers are idle"), (2, "three groups are idle"), (8, "five turns"), (3, "How many groups")],
        ),
        "hours_longest_first": Answers(
            right=[11, 11.0],
            wrong=[
                (10, "best division"),
                (12, "shortest first"),
                (20, "one worker alone"),
                (6, "not the last to end"),
                (13, "one by one"),
            ],
        ),
        "epochs_of_halving": Answers(
            right=[63],
            wrong=[
                (81, "from its checkpoint"),
                (243, "all trials to the end"),
                (39, "number of jobs"),
                (72, "Nothing follows"),
                (60, "how many trials are in each round"),
            ],
        ),
        "points_of_luck": Answers(
            right=[2.65, 2.649],
            wrong=[
                (1.5, "error of one trial"),
                (1.766, "in standard deviations"),
                (0.0265, "percentage points"),
                (0.662, "not the mean of sixteen"),
                (92.65, "By how much is it too high"),
                (4.0, "standard deviation of one measurement"),
            ],
        ),
    },
    "11_frameworks": {
        "updates_of_an_epoch": Answers(
            right=[196, 196.0],
            wrong=[
                (1563, "one device alone"),
                (6250, "samples of a device"),
                (195, "last samples"),
                (195.3125, "no part of an update"),
                (12504, "not more"),
            ],
        ),
        "rate_of_eight": Answers(
            right=[0.4],
            wrong=[
                (0.2, "samples of a device have changed"),
                (0.1, "number of devices has changed"),
                (0.05, "Nobody scales"),
                (0.1414, "rule for Adam"),
                (0.00625, "allows a larger rate"),
                (0.8, "effective batches"),
            ],
        ),
        "least_update_ms": Answers(
            right=[73.5],
            wrong=[
                (75, "the whole"),
                (0.03, "Divide by the share"),
                (0.0735, "in seconds"),
                (0.75, "not 2"),
                (76.5, "what the framework adds"),
            ],
        ),
        "counted_twice": Answers(
            right=[8],
            wrong=[
                (16, "missing to one more"),
                (0, "no multiple of 24"),
                (24, "Not every rank"),
                (42, "samples of a rank"),
                (1008, "How many is that together"),
            ],
        ),
        "accuracy": Answers(
            right=[
                lambda right, seen: sum(right) / sum(seen),
                lambda right, seen: sum(r / sum(seen) for r in right),
            ],
            wrong=[
                (lambda right, seen: sum(r / s for r, s in zip(right, seen, strict=True)) / len(seen), "equally many"),
                (lambda right, seen: right[0] / seen[0], "rank 0 alone"),
                (lambda right, _: sum(right) / len(right), "not a share"),
                (lambda right, seen: sum(seen) / sum(right), "other way round"),
                (0.9, "must be a function"),
            ],
        ),
    },
    "12_failures": {
        "failure_hours": Answers(
            right=[12],
            wrong=[
                (12000, "one worker alone"),
                (0.5, "in days"),
                (720, "in minutes"),
                (500000, "fail more often"),
                (24, "all workers together"),
            ],
        ),
        "young_minutes": Answers(
            right=[15],
            wrong=[
                (207.8, "not one alone"),
                (10.61, "half an interval"),
                (900, "in seconds"),
                (116.2, "not 30 minutes"),
                (225, "between two failures"),
            ],
        ),
        "lost_share": Answers(
            right=[
                lambda every, save, between: save / every + every / (2 * between),
                lambda every, save, between: (save + every * every / between / 2) / every,
            ],
            wrong=[
                (lambda every, save, between: save / every + every / between, "not always at its end"),
                (lambda every, save, _: save / every, "that failures undo"),
                (lambda every, _, between: every / (2 * between), "And the saves"),
                (lambda every, save, between: 1 - save / every - every / (2 * between), "what is left"),
                (lambda every, save, between: save / every + between / (2 * every), "the less they undo"),
                (0.1, "must be a function"),
            ],
        ),
        "rate_of_those_left": Answers(
            right=[0.45],
            wrong=[
                (0.6, "Here it shrinks"),
                (0.5196, "rule for Adam"),
                (0.15, "that died"),
                (0.8, "a lower rate"),
                (1, "in proportion"),
            ],
        ),
        "first_order_fails": Answers(
            right=[
                {"failures.restart_cost": "6 h"},
                {"failures.mean_time_between": "2 d"},
                {"failures.checkpoint_every": "24 h"},
            ],
            wrong=[
                ({}, "still right"),
                ({"failures.restart_cost": "2 h"}, "stronger"),
                ({"steps": 100}, "must stay"),
            ],
        ),
    },
}
