"""Real searches: processes train, and the results do not depend on their number."""

from __future__ import annotations

import importlib
import multiprocessing
from itertools import pairwise
from pathlib import Path

import pytest

from distsim import InputError
from distsim.search.digits import learnt_and_held_out, train, trial
from distsim.search.digits import test_accuracy as accuracy_on_test
from distsim.search.job import Job, best
from distsim.search.processes import measured_search, processes
from distsim.search.sources import Halving, Queue

BATCHES = [{"batch": batch} for batch in (64, 512, 128)]


FAILING = """
def failing(job):
    if job.trial == 1:
        raise ValueError("trial 1 fails")
    return 0.5
"""


@pytest.mark.real
def test_losses_are_the_same_with_any_number_of_workers_and_each_worker_does_one_thing_at_a_time() -> None:
    losses = {}
    for workers in (1, 2):
        with processes(workers, trial, Job(0, BATCHES[1], until=1)) as executor:
            found = measured_search(Queue(BATCHES, epochs=2), workers, trial, executor)
        losses[workers] = {one.job.label: one.loss for one in found}
        assert len(losses[workers]) == 3
        assert found[0].start_seconds == 0.0
        assert {one.worker for one in found} <= set(range(workers))
        for worker in range(workers):
            own = [one for one in found if one.worker == worker]
            assert all(before.end_seconds <= after.start_seconds for before, after in pairwise(own))
    assert losses[1] == losses[2]
    assert losses[1]["batch 64"] == train(batch=64, rate=0.02, epochs=2, model="cnn").losses[-1]
    assert not multiprocessing.active_children()


@pytest.mark.real
@pytest.mark.more
def test_halving_really_runs() -> None:
    with processes(2, trial) as executor:
        found = measured_search(Halving(BATCHES, least=1, most=2, factor=2), 2, trial, executor)
    assert [one.job.until for one in found] == [1, 1, 1, 2]
    assert best(found) == found[-1]


@pytest.mark.real
@pytest.mark.more
def test_an_error_of_a_trial_ends_all_processes_and_what_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_trial.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    failing = importlib.import_module("my_trial").failing
    with pytest.raises(ValueError, match="trial 1 fails"), processes(2, failing) as executor:
        measured_search(Queue(BATCHES, epochs=1), 2, failing, executor)
    assert not multiprocessing.active_children()
    (tmp_path / "my_trial.py").unlink()
    said = r"my_trial\.failing': cannot be imported .* Cure: write the function in a file"
    with pytest.raises(InputError, match=said), processes(1, failing):
        pass
    assert not multiprocessing.active_children()


def test_no_processes_are_refused() -> None:
    with pytest.raises(InputError, match="workers = 0"), processes(0, trial):
        pass


def test_a_trial_learns_from_its_own_samples_and_is_repeated_by_its_seed() -> None:
    learnt, held_out = learnt_and_held_out()
    assert (len(learnt), len(held_out)) == (1149, 288)
    once, again, other = (train(batch=128, rate=0.3, epochs=3, seed=seed) for seed in (1, 1, 2))
    assert once.losses == again.losses
    assert once.losses != other.losses
    assert len(once.accuracies) == 3
    assert 0.05 < accuracy_on_test(once.model) < 1.0
