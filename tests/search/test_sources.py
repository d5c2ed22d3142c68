"""Who chooses the next job: successive halving beside its rule written anew, and Optuna's samplers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import optuna
import pytest

from distsim import InputError
from distsim.search.clock import simulated_search
from distsim.search.job import Job, Placed, best
from distsim.search.sources import Asked, AsynchronousHalving, Halving

optuna.logging.set_verbosity(optuna.logging.WARNING)
CASES = [(seed, trials, factor, workers) for seed, (trials, factor, workers) in enumerate(
    (trials, factor, workers) for trials in (1, 2, 7, 16, 27) for factor in (2, 3) for workers in (1, 3, 8)
)]  # fmt: skip


def losses(seed: int, trials: int) -> np.ndarray:
    """Of each trial after each of 9 epochs: they cross, so that the best early is not always the best late."""
    draws = np.random.default_rng(seed).normal(size=(trials, 10))
    return np.cumsum(draws, axis=1)


def searched(source: Halving, seed: int, trials: int, workers: int) -> list[Placed]:
    table = losses(seed, trials)
    speed = np.random.default_rng([seed, 1]).uniform(1.0, 5.0, trials)
    return simulated_search(source, workers, lambda job: (job.epochs * speed[job.trial], table[job.trial, job.until]))


@pytest.mark.parametrize(("seed", "trials", "factor", "workers"), CASES)
def test_halving_promotes_the_best_of_each_rung_whatever_the_workers(
    seed: int, trials: int, factor: int, workers: int
) -> None:
    source = Halving([{"number": number} for number in range(trials)], least=1, most=9, factor=factor)
    found = searched(source, seed, trials, workers)
    table, going, before, expected = losses(seed, trials), list(range(trials)), 0, set[tuple[int, int, int]]()
    for until in source.rungs:  # the rule written anew
        expected |= {(trial, before, until) for trial in going}
        going = sorted(going, key=lambda trial: table[trial, until])[: max(len(going) // factor, 1)]
        before = until
    assert {(one.job.trial, one.job.before, one.job.until) for one in found} == expected
    assert len(found) == len(expected)
    ends = {until: max(one.end_seconds for one in found if one.job.until == until) for until in source.rungs}
    for one in found:  # a rung begins after the last of the rung before
        assert one.job.before == 0 or one.start_seconds >= ends[one.job.before]


@pytest.mark.parametrize(("seed", "trials", "factor", "workers"), [case for case in CASES if case[1] > 9])
def test_asynchronous_halving_waits_for_no_rung_and_in_the_end_has_promoted_the_best(
    seed: int, trials: int, factor: int, workers: int
) -> None:
    source = AsynchronousHalving([{"number": number} for number in range(trials)], least=1, most=9, factor=factor)
    found = searched(source, seed, trials, workers)
    jobs = [(one.job.trial, one.job.until) for one in found]
    assert len(set(jobs)) == len(jobs)
    assert {trial for trial, until in jobs if until == 1} == set(range(trials))
    table = losses(seed, trials)
    ended = {(one.job.trial, one.job.until): one.end_seconds for one in found}
    for one in found:  # a promotion begins after its trial's last job, and among the best of those that had ended
        if one.job.before:
            assert ended[one.job.trial, one.job.before] <= one.start_seconds
            there = [t for (t, until), end in ended.items() if until == one.job.before and end <= one.start_seconds]
            ranked = sorted(there, key=lambda trial: table[trial, one.job.before])
            assert one.job.trial in ranked[: len(there) // factor]
    for before, until in pairwise(source.rungs):
        there = sorted((t for t, at in jobs if at == before), key=lambda trial: table[trial, before])
        assert {t for t, at in jobs if at == until} >= set(there[: len(there) // factor])


def test_rungs_end_at_the_most_and_a_trial_without_a_number_goes_on_last() -> None:
    assert Halving([{}], least=1, most=10, factor=3).rungs == [1, 3, 10]
    assert Halving([{}], least=4, most=5, factor=2).rungs == [5]
    source = Halving([{"number": number} for number in range(4)], least=1, most=2, factor=2)
    found = simulated_search(source, 2, lambda job: (1.0, [math.nan, 0.3, 0.2, math.nan][job.trial]))
    assert [one.job.trial for one in found if one.job.until == 2] == [2, 1]
    assert best(found).job.trial == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"factor": 1}, "factor = 1"), ({"least": 0}, "least = 0"), ({"least": 10}, "most, which is 9"),
     ({"trials": []}, "must hold a trial")],
)  # fmt: skip
@pytest.mark.parametrize("kind", [Halving, AsynchronousHalving])
def test_bad_arguments_are_refused(kind: type[Halving], arguments: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        kind(**({"trials": [{}], "least": 1, "most": 9} | arguments))


def test_asynchronous_halving_promotes_from_the_highest_rung_first() -> None:
    source = AsynchronousHalving([{"number": number} for number in range(6)], least=1, most=4, factor=2)
    jobs = [source.job() for _ in range(6)]
    for job in jobs[:4]:
        source.done(job, float(job.trial))
    promoted = [source.job(), source.job()]  # trials 0 and 1, to two epochs
    for job in jobs[4:]:
        source.done(job, float(job.trial))  # now trial 2 is promotable, too
    for job in promoted:
        source.done(job, float(job.trial))
    assert [(job.trial, job.until) for job in (source.job(), source.job())] == [(0, 4), (2, 2)]


def test_trials_of_which_none_would_end_are_too_few_for_asynchronous_halving() -> None:
    with pytest.raises(InputError, match=r"trials = 8: are too few: with 3 rungs.* give 9 or more"):
        AsynchronousHalving([{}] * 8, least=1, most=9)
    source = AsynchronousHalving([{"number": number} for number in range(9)], least=1, most=9)
    assert best(searched(source, 0, 9, 4)).job.until == 9


@pytest.mark.parametrize("workers", [1, 4])
def test_a_study_is_asked_when_a_worker_is_idle_and_knows_what_has_ended(workers: int) -> None:
    space = {"rate": optuna.distributions.FloatDistribution(0.01, 10.0, log=True)}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    known = []

    def outcome(job: Job) -> tuple[float, float]:
        known.append(len(study.get_trials(states=[optuna.trial.TrialState.COMPLETE])))
        return 1.0, math.nan if job.trial == 5 else abs(math.log(job.settings["rate"]))

    found = simulated_search(Asked(study, space, trials=9, epochs=10), workers, outcome)
    assert len(found) == 9
    assert known == [number if workers == 1 else 4 * (number // 4) for number in range(9)]
    assert study.best_value == pytest.approx(best(found).loss)
    assert study.trials[5].value == math.inf
    assert [trial.params["rate"] for trial in study.trials] == [one.job.settings["rate"] for one in found]
