"""A part of a run is never taken for the whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import distsim
from distsim.cli.main import distsim as command
from distsim.critical_path import critical_path
from distsim.errors import InputError
from distsim.figures import SpeedUps, timeline, utilization
from distsim.figures.catalogue import KINDS
from distsim.learning.updates import recorded_updates
from distsim.metrics import summary, throughput_samples_per_second, worker_seconds
from distsim.metrics.links import bytes_per_link
from distsim.metrics.regime import regime
from distsim.metrics.steps import step_durations
from distsim.metrics.worker_time import goodput
from distsim.trace import Trace

START, END = 0.0737, 0.2041
OF_A_RUN: dict[str, Callable[[Trace], Any]] = {
    "summary": summary,
    "compare": lambda trace: distsim.compare(trace, trace),
    "critical path": critical_path,
    "utilization": utilization,
    "replay": recorded_updates,
    "regime": regime,
    "throughput": throughput_samples_per_second,
    "goodput": goodput,
    "links": bytes_per_link,
    "steps": step_durations,
    "speed-ups": lambda trace: SpeedUps.of_traces("ring", [trace]),
}


@pytest.fixture(scope="module")
def whole() -> Trace:
    return distsim.simulate(distsim.example("backup_server"))


@pytest.mark.parametrize("name", OF_A_RUN)
def test_what_is_said_of_a_run_is_not_said_of_a_part(whole: Trace, name: str) -> None:
    with pytest.raises(InputError, match=r"73\.7 ms to 204 ms.*part of a run.* Cure: take the trace of the whole run"):
        OF_A_RUN[name](whole.between(START, END))


def test_seconds_of_a_part_are_those_within_it(whole: Trace) -> None:
    """Cut the run at two times: the parts' seconds add up to the run's."""
    total = whole.total_seconds
    cuts = [0.0, START, END, total]
    parts = [worker_seconds(whole.between(*cuts[number : number + 2])) for number in range(3)]
    for part, seconds in worker_seconds(whole).items():
        assert np.sum([found[part] for found in parts], axis=0) == pytest.approx(seconds, abs=1e-12)


def test_a_part_ends_with_the_run_or_with_the_part_that_it_is_of(whole: Trace) -> None:
    """No second is told that the run did not have."""
    assert whole.between(-5.0, 100.0).part_seconds == (0.0, whole.total_seconds)
    assert whole.between(START, END).between(0.0, 0.1).part_seconds == (START, 0.1)
    for nothing in ((-2.0, -1.0), (whole.total_seconds, 100.0)):
        with pytest.raises(InputError, match="has nothing of the run, which is from 0 s to"):
            whole.between(*nothing)
    with pytest.raises(InputError, match=r"which is from 73\.7 ms to 204 ms"):
        whole.between(START, END).between(1.0, 2.0)


def test_a_timeline_tells_the_shares_of_the_part(whole: Trace) -> None:
    part = whole.between(START, END)
    [row] = timeline(part).table
    assert row["total (s)"] == pytest.approx(END - START)
    seconds = worker_seconds(part)["compute"].sum()
    assert row["compute (%)"] == pytest.approx(100 * seconds / (END - START) / whole.workers)


@pytest.mark.parametrize("kind", ["timeline", "traffic", "staleness"])
def test_the_command_says_that_it_draws_a_part(whole: Trace, kind: str, tmp_path: Path) -> None:
    assert KINDS[kind].of_files([whole], {}).summary[:6] != "A part"
    whole.between(START, END).save(tmp_path / "part.npz")
    drawn = CliRunner().invoke(command, ["figure", kind, str(tmp_path / "part.npz"), "-o", str(tmp_path / "out.html")])
    assert drawn.exit_code == 0, drawn.output
    assert "A part of the run, from 73.7 ms to 204 ms. " in drawn.output
