"""The frame with an explorer of the tests' own: what it refuses, real runs, and which scenario they take."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import psutil
import pytest

from distsim.comparison import compare
from distsim.errors import InputError
from distsim.examples import example
from distsim.experiment import Experiment
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Slider
from distsim.explorers.explorer import REFUSED, Explorer
from distsim.explorers.real_run_panel import other_links
from distsim.figures.captioned import Captioned
from distsim.runtime.launch.fork_server import NO_RUN
from distsim.runtime.launch.lifeline import RUN_VARIABLE
from distsim.scenario import Scenario
from distsim.simulation import simulate

SECONDS = 30.0  # until what should have happened is taken to have failed
WORKERS = 3


@dataclass(frozen=True)
class Parameters:
    """Of the tests' explorer."""

    amount: int = 1
    steps: int = 6


def scenarios(parameters: Parameters) -> tuple[Scenario, Scenario]:
    """Two, so that the last can be told from the first."""
    table: dict[str, Any] = {
        "steps": parameters.steps,
        "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"mean": "20 ms"},
        "workload": {"gradient": "64 KiB"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
    return tuple(Scenario.of(table | {"name": name}) for name in ("first", "last"))  # type: ignore[return-value]


def found(parameters: Parameters) -> Captioned:
    """A figure of one point."""
    if parameters.amount > 8:
        raise InputError.of("amount", parameters.amount, "must be at most 8", "write 8")
    figure = go.Figure(go.Scatter(x=[parameters.amount], y=[1]))
    return Captioned(figure, f"It is {parameters.amount}.", [{"thing": "it", "amount": parameters.amount}])


def frame(**options: Any) -> Explorer[Parameters]:
    """The tests' explorer."""
    return Explorer(
        "A title", "A question?", Parameters(), [Slider("amount", "amount", "", 1, 10)],
        [Slider("steps", "steps", "", 1, 1000)], found, scenarios, ("amount",), **options,
    )  # fmt: skip


def text(widget: Any) -> str:
    """What an HTML widget reads like."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", widget.value)).split())


def test_an_impossible_combination_is_told_beside_the_controls() -> None:
    view = frame()
    assert text(view.changed) == "Move a control: this line tells what it changed."
    view.controls["amount"].value = 9
    assert "must be at most 8" in text(view.message)
    assert text(view.changed) == "The figure shows the last combination that is possible."
    assert view.shown is not None
    assert view.shown.summary == "It is 1."
    view.controls["amount"].value = 6
    assert text(view.message) == ""
    assert text(view.changed) == "Changed amount from 1 to 6: it: amount 1 → 6."


def test_the_old_result_is_dimmed_beside_a_refusal_and_is_not_run() -> None:
    view = frame()
    for amount, refused in ((9, True), (10, True), (6, False), (9, True)):
        view.controls["amount"].value = amount
        assert (REFUSED in view.panes._dom_classes) is refused
        assert view.real_run.button.disabled is refused
        assert ("Not here: this combination is impossible." in text(view.real_run.why)) is refused
    view.reset.click()
    assert REFUSED not in view.panes._dom_classes


def test_it_offers_the_last_scenario_or_the_one_it_is_given() -> None:
    assert frame().real_run.scenario == scenarios(Parameters())[-1]
    first = frame(real=lambda parameters: scenarios(parameters)[0])
    assert first.real_run.scenario == scenarios(Parameters())[0]
    assert frame(real=lambda _: None).real_run.controls.layout.display == "none"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cluster.workers": 500}, "500 processes share"),
        ({"communication.kind": "tree"}, "kind = 'tree'"),
    ],
)
def test_a_machine_that_cannot_run_it_says_why(change: dict[str, Any], why: str) -> None:
    view = frame(real=lambda parameters: scenarios(parameters)[0].replacing(change))
    assert view.real_run.button.disabled
    assert text(view.real_run.why).startswith("Not here: ")
    assert why in text(view.real_run.why)


def test_a_machine_without_torch_or_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not frame().real_run.button.disabled
    with monkeypatch.context() as without:
        without.setattr("distsim.extras.find_spec", lambda _: None)
        assert "needs torch" in text(frame().real_run.why)
    free = replace_available(100e6)
    monkeypatch.setattr("distsim.runtime.machine.psutil.virtual_memory", lambda: free)
    assert "100 MB are free" in text(frame().real_run.why)


def replace_available(amount: float) -> Any:
    """The machine's memory, with so much of it free."""
    return psutil.virtual_memory()._replace(available=int(amount))


def test_a_real_run_on_other_links_than_the_figures_says_so() -> None:
    drawn = example("synchronous_ring")
    other = drawn.replacing({"cluster.bandwidth": "400 Mbit/s", "cluster.latency": "1 ms"})
    one, two = simulate(drawn), simulate(other)
    assert other_links(drawn, Experiment(compare(one, one), one, one, [], [])) == ""
    told = other_links(drawn, Experiment(compare(two, two), two, two, [], []))
    bandwidth, latency = drawn.cluster.bandwidth_bytes_per_second, drawn.cluster.latency_seconds
    there = f"and the figure has {8e-9 * bandwidth:g} Gbit/s and {1e6 * latency:g} us."
    assert f"Other links than in the figure:</b> the real run had 0.4 Gbit/s and 1,000 us, {there}" in told


def test_a_real_run_of_other_steps_than_the_figures_says_so() -> None:
    view = EXPLORERS["overlap"].open()
    panel = view.real_run
    assert panel.scenario is not None
    run = simulate(panel.scenario)
    panel._ended(Experiment(compare(run, run), run, run, [], []), panel.drawn, None)
    assert text(panel.heading).startswith("Run for real: buckets-of-25-MiB, 8 workers, 16 steps (the figure has 48).")
    view.controls["bucket_mib"].value = 50.0
    assert "16 steps (the figure has 48). The controls have been moved since." in text(panel.heading)
    view = EXPLORERS["your_cluster"].open()
    panel = view.real_run
    assert panel.scenario is not None
    run = simulate(panel.scenario)
    panel._ended(Experiment(compare(run, run), run, run, [], []), panel.drawn, None)
    assert text(panel.heading).startswith("Run for real: your-cluster-4, 4 workers. ")


@pytest.mark.real
@pytest.mark.more
@pytest.mark.alone
def test_it_runs_for_real_and_sets_prediction_beside_measurement() -> None:
    view = frame()
    seen: list[int] = []
    view.real_run.progress.bar.observe(lambda change: seen.append(change["new"]), names="value")
    view.real_run.button.click()
    assert view.real_run.button.disabled
    assert view.real_run.progress.layout.display == "flex"
    view.real_run.button.click()  # no second one beside it
    assert view.real_run.background.wait(120.0)
    run = view.real_run.found
    assert run is not None, text(view.real_run.why)
    assert (run.predicted.producer, run.measured.producer) == ("simulated", "measured")
    assert run.measured.scenario == scenarios(Parameters())[-1]
    assert re.search(r"The predicted total is .* % (above|below) the measured", text(view.real_run.heading))
    assert text(view.real_run.heading).startswith("Run for real: last, 3 workers. Other links than in the figure: ")
    assert "predicted" in view.real_run.picture.figure
    assert seen == sorted(seen)
    assert len(seen) > 2
    assert not view.real_run.button.disabled
    view.controls["steps"].value = 7
    assert "The controls have been moved since." in text(view.real_run.heading)
    assert view.real_run.result.layout.display == "flex"


@pytest.mark.real
@pytest.mark.more
@pytest.mark.alone
def test_a_cancelled_run_leaves_no_process_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    view = frame()
    view.controls["steps"].value = 1000
    begin(view)
    assert len(ranks_below()) >= WORKERS
    view.real_run.progress.button.click()
    assert view.real_run.background.wait(SECONDS)
    assert text(view.real_run.why).startswith("Cancelled")
    assert view.real_run.found is None
    assert not view.real_run.button.disabled
    assert not ranks_below()
    assert not list(tmp_path.iterdir())


@pytest.mark.real
@pytest.mark.more
@pytest.mark.alone
def test_a_run_ends_before_its_first_step_when_it_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    view = frame()
    view.controls["steps"].value = 1000
    view.real_run.button.click()
    view.real_run.progress.button.click()
    assert view.real_run.background.wait(SECONDS)
    assert view.real_run.progress.bar.value == 0
    assert text(view.real_run.why).startswith("Cancelled")
    assert not ranks_below()
    assert not list(tmp_path.iterdir())


@pytest.mark.real
@pytest.mark.more
@pytest.mark.alone
def test_two_explorers_do_not_measure_at_once() -> None:
    one, other = frame(), frame()
    one.controls["steps"].value = 1000
    begin(one)
    other.real_run.button.click()
    assert other.real_run.background.wait(SECONDS)
    assert "another real run is under way" in text(other.real_run.why)
    one.real_run.progress.button.click()
    assert one.real_run.background.wait(SECONDS)


def begin(view: Explorer[Parameters]) -> None:
    """Starts the real run, and returns when its ranks are at work."""
    told = threading.Event()
    view.real_run.progress.bar.observe(lambda _: told.set(), names="value")
    view.real_run.progress.layout.observe(lambda change: change["new"] == "none" and told.set(), names="display")
    view.real_run.button.click()
    assert told.wait(120.0)
    assert view.real_run.background.busy, text(view.real_run.why)


def ranks_below() -> list[psutil.Process]:
    """The processes of real runs that descend from this one; a fork server of this process may stay, and is of none."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if _of_a_run(process)]


def _of_a_run(process: psutil.Process) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE, NO_RUN) != NO_RUN
    except psutil.Error:
        return False
