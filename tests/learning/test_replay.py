"""Replay against a second telling of what it means, for every policy; against theory; what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from distsim import InputError, Scenario, Trace, progress, simulate
from distsim.examples import example
from distsim.learning.batches import Batches
from distsim.learning.delays import delayed, plain
from distsim.learning.optimizers import Optimizer, Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import Replay, replay
from distsim.learning.updates import recorded_updates
from distsim.theory.descent import quadratic_losses
from tests.learning.adam import Adam

POLICIES: dict[str, dict[str, Any]] = {
    "synchronous": {"kind": "synchronous"},
    "synchronous, two servers": {"kind": "synchronous"},
    "backup": {"kind": "backup", "backups": 2},
    "backup, cancel": {"kind": "backup", "backups": 2, "cancel": True},
    "asynchronous": {"kind": "asynchronous"},
    "asynchronous, per worker": {"kind": "asynchronous", "stop": "per_worker"},
    "stale synchronous": {"kind": "stale_synchronous", "staleness": 2},
    "flexrr": {"kind": "flexrr", "staleness": 1, "items": 4},
    "local sgd": {"kind": "local_sgd", "period": 3},
    "ddp": {"kind": "ddp"},
    "ddp, accumulate": {"kind": "ddp", "accumulate": 3},
    "pipeline": {"kind": "pipeline", "schedule": "gpipe", "micro_batches": 2},
}
PEERS = ("local_sgd", "ddp", "pipeline")
BATCH = 6
QUADRATIC = Quadratic(samples=320)


def run(name: str, **tables: Any) -> Trace:
    """Five workers of very different speed."""
    policy = POLICIES[name]
    communication: dict[str, Any] = {"kind": "ring" if policy["kind"] in PEERS else "parameter_server"}
    if name.endswith("two servers"):
        communication["servers"] = 2
    table = {
        "steps": 20,
        "seed": 3,
        "cluster": {"workers": 5, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        "compute": {"distribution": "exponential", "mean": "50 ms", "slow": {1: 3.0}},
        "workload": {"gradient": "100 kB", "batch": BATCH, "activation": "10 kB"},
        "policy": policy,
        "communication": communication,
    }
    return simulate(Scenario.of(table | tables))


def retold(trace: Trace, optimizer: Optimizer) -> list[float]:
    """The loss after each update, as the trace's columns say it, row by row and keeping everything."""
    kind = trace.metadata["scenario"]["policy"]["kind"]
    rows = trace.contributions.where(trace.contributions.applied).to_pandas()
    rows = rows[rows.server == rows.server.min()]
    rows = rows[rows.worker == 0] if kind == "pipeline" else rows
    batches = Batches(QUADRATIC.samples, 1 if kind == "pipeline" else 5, BATCH, seed=3)
    descents = [optimizer.begin() for _ in range(5)]
    kept = [QUADRATIC.start(3)]
    for version in range(1, int(trace.updates.version.max()) + 1):
        own = rows[rows.version == version]
        moved, gradients = [], []
        for (worker, _), step in own.groupby(["worker", "version" if kind == "local_sgd" else "step"]):
            parts = []
            for row in step.sort_values(["step", "first_item"]).itertuples():
                samples = batches.of(int(worker), int(row.step))
                bounds = [round(item * len(samples) / 4) for item in range(1, 4)] if kind == "flexrr" else []
                pieces = np.split(samples, bounds)
                x = parts[-1] if kind == "local_sgd" and parts else kept[row.read_version]
                mine = np.concatenate(pieces[row.first_item : row.first_item + row.items])
                noise = QUADRATIC._noise[mine].sum(axis=0) + len(mine) * QUADRATIC.curvature * x
                if kind == "local_sgd":
                    parts.append(descents[int(worker)].step(x, noise / len(samples)))
                else:
                    parts.append(noise / len(samples))
            moved.append(parts[-1])
            gradients.append(np.sum(parts, axis=0))
        mean = np.mean(gradients, axis=0)
        kept.append(np.mean(moved, axis=0) if kind == "local_sgd" else descents[0].step(kept[-1], mean))
    return [QUADRATIC.loss(parameters) for parameters in kept]


@pytest.mark.parametrize("optimizer", [Sgd(0.3), Sgd(0.03, momentum=0.9), Adam(0.05)], ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("name", POLICIES)
def test_it_is_what_the_trace_says(name: str, optimizer: Optimizer) -> None:
    trace = run(name)
    curve = replay(trace, QUADRATIC, optimizer)
    assert np.allclose(curve.loss, retold(trace, optimizer), rtol=1e-10)
    servers = len(np.unique(trace.updates.server))
    assert np.array_equal(np.sort(curve.seconds[1:]), np.sort(trace.updates.time_seconds.reshape(-1, servers)[:, -1]))


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("synchronous", 30), ("backup", 18), ("asynchronous", 6), ("flexrr", 6),
        ("ddp, accumulate", 90), ("local sgd", 90), ("pipeline", 6),
    ],
)  # fmt: skip
def test_the_effective_batch_is_explicit(name: str, samples: int) -> None:
    curve = replay(run(name), Quadratic(samples=30 * 30), Sgd(0.1))
    assert curve.update_samples[0] == samples
    assert curve.samples.tolist() == np.concatenate([[0], np.cumsum(curve.update_samples)]).tolist()
    assert curve.effective_batch == curve.update_samples.mean()


def test_a_local_step_and_an_average_are_a_synchronous_update() -> None:
    table = {"policy": {"kind": "local_sgd", "period": 1}}
    local = replay(run("local sgd", **table), QUADRATIC, Sgd(0.2))
    together = replay(run("synchronous"), QUADRATIC, Sgd(0.2))
    assert np.allclose(local.loss, together.loss, rtol=1e-12)


def test_the_same_arguments_give_the_same_curve() -> None:
    trace = run("asynchronous")
    one, other = (replay(trace, QUADRATIC, Sgd(0.1, 0.5)) for _ in range(2))
    assert one.to_pandas().equals(other.to_pandas())
    assert np.array_equal(one.parameters, other.parameters)
    assert not np.array_equal(one.parameters, replay(trace, QUADRATIC, Sgd(0.1, 0.5), seed=4).parameters)


def test_only_versions_that_somebody_still_reads_are_kept() -> None:
    recorded = recorded_updates(delayed([3] * 400))
    running = Replay(recorded, QUADRATIC, Sgd(0.1), Batches(320, 1, 1, 0), 1.0)
    largest = 0
    apply = running.apply

    def watched(update: Any) -> Any:
        nonlocal largest
        largest = max(largest, len(running.versions))
        return apply(update)

    running.apply = watched  # type: ignore[method-assign]
    running.curve(points=1, target=None)
    assert largest == 4


def test_the_variance_of_a_gradient_is_the_noise_s_over_the_batch() -> None:
    quadratic = Quadratic(samples=2**13)
    parameters = quadratic.start(0)
    _, whole = quadratic.gradient(parameters)
    for batch in (1, 16):
        batches = Batches(quadratic.samples, 1, batch, 0)
        gradients = np.array([quadratic.gradient(parameters, batches.of(0, step))[1] for step in range(500)])
        found = np.square(gradients - whole).sum(axis=1)
        assert abs(found.mean() - quadratic.curvature.sum() / batch) < 4 * found.std() / np.sqrt(len(found))


def test_a_gradient_of_old_parameters_is_applied_to_new_ones() -> None:
    first = QUADRATIC.start(0)
    last = replay(delayed([0, 1, 2]), QUADRATIC, Sgd(0.1)).parameters
    noises = [QUADRATIC._noise[Batches(320, 1, 1, 0).of(0, step)[0]] for step in range(3)]
    gradients = [QUADRATIC.curvature * first + noise for noise in noises]
    assert np.allclose(last, first - 0.1 * sum(gradients), rtol=1e-12)


def test_a_sparse_gradient_keeps_its_largest_entries() -> None:
    first = QUADRATIC.start(0)
    curve = replay(plain(1, 1), QUADRATIC, Sgd(1.0), touched=0.25)
    _, gradient = QUADRATIC.gradient(first, Batches(320, 1, 1, 0).of(0, 0))
    largest = np.argsort(-np.abs(gradient))[:5]
    moved = np.flatnonzero(curve.parameters != first)
    assert sorted(moved) == sorted(largest)
    assert np.allclose(curve.parameters[moved], (first - gradient)[moved])
    table = {"policy": {"kind": "asynchronous", "touched": 0.25}}
    assert replay(run("asynchronous", **table), QUADRATIC, Sgd(0.1)).loss[-1] != replay(
        run("asynchronous"), QUADRATIC, Sgd(0.1)
    ).loss[-1]  # fmt: skip


def test_points_are_spread_over_the_run() -> None:
    curve = replay(plain(1000, 1), QUADRATIC, Sgd(0.1), points=4)
    assert curve.update.tolist() == [0, 250, 500, 750, 1000]
    assert curve.seconds.tolist() == [0.0, 250.0, 500.0, 750.0, 1000.0]
    assert curve.loss_at(600.0) == curve.loss[2]
    assert (curve.seconds_to(curve.loss[0]), curve.updates_to(-1.0)) == (0.0, np.inf)
    assert len(curve.batch_loss) == 1000


def test_it_ends_at_its_target() -> None:
    whole = replay(plain(1000, 8), QUADRATIC, Sgd(0.1), points=100)
    curve = replay(plain(1000, 8), QUADRATIC, Sgd(0.1), points=100, target=0.5)
    assert 0.5 >= curve.loss[-1] == whole.loss[len(curve.loss) - 1]
    assert curve.loss[:-1].min() > 0.5
    assert curve.seconds_to(0.5) == curve.seconds[-1] == whole.seconds_to(0.5)
    assert len(curve.batch_loss) == curve.update[-1]


def test_a_person_who_waits_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(plain(1000, 1), QUADRATIC, Sgd(0.1))
    assert not capsys.readouterr().err, "nobody looks"
    monkeypatch.setattr(progress, "_watched", lambda: True)
    replay(plain(1000, 1), QUADRATIC, Sgd(0.1))
    assert not capsys.readouterr().err.strip(), "it ends before the delay"
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    replay(plain(1000, 1), QUADRATIC, Sgd(0.1))
    assert re.search(r"replay: \d+ of 1000", capsys.readouterr().err)


def test_a_loss_without_bound_is_a_finding() -> None:
    curve = replay(plain(4000, 1), QUADRATIC, Sgd(3.0))
    assert not np.isfinite(curve.loss[-1])


def without(trace: Trace, **columns: Any) -> Trace:
    """The trace with these columns of its contributions."""
    return replace(trace, contributions=replace(trace.contributions, **columns))


def of_scenario(trace: Trace, table: Any) -> Trace:
    """The trace of another scenario."""
    return replace(trace, metadata=trace.metadata | {"scenario": table})


REFUSED = {
    "no scenario": (lambda t: of_scenario(t, None), r"no metadata\.scenario\.policy\.kind"),
    "no policy": (lambda t: of_scenario(t, {"steps": 5}), r"no metadata\.scenario\.policy\.kind"),
    "unknown policy": (
        lambda t: of_scenario(t, {"policy": {"kind": "gossip"}}),
        r"policy\.kind = 'gossip': is a policy that no replay knows",
    ),
    "no updates": (lambda t: replace(t, updates=t.updates.where(t.updates.version < 0)), r"no updates\.version"),
    "no rows": (
        lambda t: replace(t, contributions=t.contributions.where(t.contributions.version < 0)),
        r"no contributions\.version, which names the gradients of update 1\b",
    ),
    "a row less": (
        lambda t: replace(t, contributions=t.contributions.where(t.contributions.version != 7)),
        r"no contributions\.version, which names the gradients of update 7\b",
    ),
    "no versions read": (
        lambda t: without(t, read_version=np.full(len(t.contributions), -1)),
        r"no contributions\.read_version",
    ),
    "versions of the future": (
        lambda t: without(t, read_version=t.contributions.version),
        r"contributions\.read_version = \d+: is no older than the update",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_trace_that_tells_too_little_says_what_is_missing(case: str) -> None:
    change, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        replay(change(run("asynchronous")), QUADRATIC, Sgd(0.1))


def test_servers_that_averaged_different_gradients_are_refused() -> None:
    trace = run("synchronous, two servers")
    rows = trace.contributions
    first = (rows.version == 1) & (rows.server == 5)
    other = replace(rows, step=np.where(first, rows.step + 1, rows.step))
    with pytest.raises(InputError, match=r"contributions\.server = 6: averaged other gradients than server 5"):
        replay(replace(trace, contributions=other), QUADRATIC, Sgd(0.1))


@pytest.mark.parametrize(("argument", "value"), [("touched", 0.0), ("touched", 1.5), ("points", 0), ("batch", 65)])
def test_nonsense_is_refused(argument: str, value: float) -> None:
    settings: dict[str, Any] = {argument: value}
    with pytest.raises(InputError, match=f"{argument} = {value}"):
        replay(run("asynchronous"), QUADRATIC, Sgd(0.1), **settings)


def damaged(change: str) -> Trace:
    trace = simulate(example("backup_server"))
    match change:
        case "no workers":
            return replace(trace, metadata={key: value for key, value in trace.metadata.items() if key != "workers"})
        case "one worker":
            return replace(trace, metadata=trace.metadata | {"workers": 1})
        case "fewer updates":
            return replace(trace, updates=trace.updates.where(trace.updates.version <= 7))
        case _:
            return replace(trace, updates=trace.updates.where(trace.updates.version != 7))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("no workers", "metadata.workers"),
        ("one worker", "contributions.worker"),
        ("fewer updates", "updates.version, of which number 8"),
        ("a gap", "updates.version, of which number 7"),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(change: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        replay(damaged(change), Quadratic(), Sgd(rate=0.1))


def test_the_mean_loss_is_that_of_theory() -> None:
    """Over many orders of the samples, update by update."""
    trace, problem, rate = run("synchronous", steps=25), Quadratic(), 0.5
    curves = [replay(trace, problem, Sgd(rate), batch=1, seed=seed, points=25) for seed in range(200)]
    losses = np.array([curve.loss for curve in curves])
    curvature = problem.curvature
    expected = quadratic_losses(curvature, curvature, rate, batch=5, distance=problem.distance, updates=25)
    errors = losses.std(axis=0, ddof=1)[1:] / np.sqrt(len(losses))
    assert losses[0, 0] == pytest.approx(expected[0], rel=1e-12)
    assert (np.abs(losses.mean(axis=0) - expected)[1:] < 4.0 * errors).all()
