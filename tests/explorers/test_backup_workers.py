"""The explorer without a browser: set a control's value, read the figure, the sentences, the table."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html import unescape

import pytest

from distsim.errors import InputError
from distsim.explorers.backup_workers import Parameters, explore, explorer, scenarios
from distsim.explorers.controls import Slider
from distsim.explorers.explorer import Explorer
from distsim.figures.captioned import Captioned
from distsim.scenario import Scenario


def text(widget: object) -> str:
    """What an HTML widget reads like."""
    return unescape(re.sub(r"<[^>]+>", " ", widget.value)).strip()  # type: ignore[attr-defined]


@pytest.fixture
def view() -> Explorer[Parameters]:
    """A fresh explorer."""
    return explorer()


def test_both_policies_see_the_same_cluster_and_draws() -> None:
    synchronous, backup = (
        scenario.table() for scenario in scenarios(Parameters(workers=8, backups=2, pause_percent=5))
    )
    for table in (synchronous, backup):
        del table["policy"], table["name"]
    assert synchronous == backup


@pytest.mark.parametrize(
    ("parameters", "key", "value"),
    [
        (Parameters(cv=0.0), "compute", {"mean": "50 ms"}),
        (Parameters(cv=0.45), "compute", {"distribution": "lognormal", "mean": "50 ms", "cv": 0.45}),
        (Parameters(gradient_mib=0.25), "workload", {"gradient": "256 KiB"}),
        (Parameters(cancel=True), "policy", {"kind": "backup", "backups": 1, "cancel": True}),
    ],
)
def test_parameters_reach_the_scenario(parameters: Parameters, key: str, value: object) -> None:
    assert scenarios(parameters)[1].table()[key] == value


def test_it_explores_without_a_widget_and_always_the_same() -> None:
    once, again = explore(Parameters()), explore(Parameters())
    assert isinstance(once, Captioned)
    assert once.figure == again.figure
    assert [row["dropped gradients"] for row in once.table] == [0, again.table[1]["dropped gradients"]]
    assert (once.table[1]["dropped gradients"] or 0) != 0


def test_it_starts_with_a_figure_a_sentence_a_table_and_files(view: Explorer[Parameters]) -> None:
    drawn = json.loads(view.picture.figure)
    assert {panel["text"] for panel in drawn["layout"]["annotations"]} == {
        "<b>synchronous</b>",
        "<b>1 backup</b>",
    }
    assert "With 1 backup among 5 workers, the median step takes" in text(view.answer)
    assert view.picture.says in text(view.answer)
    assert view.caption.value.count("<tr>") == 3
    files = [unescape(file) for file in re.findall(r"<pre>(.*?)</pre>", view.files.value, re.DOTALL)]
    assert tuple(Scenario.loads(file) for file in files) == scenarios(Parameters())


def test_a_control_changes_the_figure_and_the_sentence_says_how(view: Explorer[Parameters]) -> None:
    assert view.shown is not None
    before = view.shown
    view.controls["backups"].value = 2
    assert view.shown.figure != before.figure
    assert view.shown.figure == explore(replace(Parameters(), backups=2)).figure
    sentence = text(view.changed)
    assert sentence.startswith("Changed backups from 1 to 2: 2 backups: step time, median (ms)")
    assert re.search(r"dropped gradients \d+ → \d+", sentence)
    assert re.search(r"idle share \(%\) [\d.]+ → [\d.]+ \(-[\d.]+ points\)", sentence)
    assert "synchronous" not in sentence  # its run is the same


def test_a_change_without_effect_is_said_aloud(view: Explorer[Parameters]) -> None:
    view.controls["backups"].value = 0
    view.controls["cancel"].value = True
    assert text(view.changed) == "Changed cancel late workers from no to yes: no number in the table changed."


def test_impossible_combination_gives_the_message_keeps_the_figure_and_recovers(view: Explorer[Parameters]) -> None:
    assert view.shown is not None
    figure = view.shown.figure
    view.controls["backups"].value = 5
    assert "backups = 5 must be fewer than the 5 workers" in text(view.message)
    assert "Cure: write backups = 4 or fewer" in text(view.message)
    assert 'role="alert"' in view.message.value
    assert view.shown.figure is figure
    assert "last combination that is possible" in text(view.changed)
    view.controls["workers"].value = 8
    assert view.message.value == ""
    assert view.shown.figure != figure
    assert text(view.changed).startswith("Changed workers, backups included from 5 to 8, backups from 1 to 5")


def test_reset_goes_back_with_one_redraw(view: Explorer[Parameters], monkeypatch: pytest.MonkeyPatch) -> None:
    assert view.shown is not None
    first = view.shown.figure
    view.controls["workers"].value = 3
    view.controls["backups"].value = 4
    drawn: list[Parameters] = []
    monkeypatch.setattr(view, "_explore", lambda parameters: drawn.append(parameters) or explore(parameters))
    view.reset.click()
    assert drawn == [Parameters()]
    assert view.message.value == ""
    assert view.shown.figure == first


def test_controls_report_on_release_and_tell_unit_and_bounds(view: Explorer[Parameters]) -> None:
    assert [control.heading for control in view.controls.values()] == [
        "workers, backups included (2 to 64)",
        "backups (0 to 16 workers)",
        "straggler spread, cv (0 to 1.5)",
        "pauses of 250 ms (0 to 20 % of steps)",
        "gradient (0.25 to 64 MiB)",
        "bandwidth (0.2 to 100 Gbit/s)",
        "cancel late workers",
        "seed of the draws (0 to 20)",
    ]
    assert not any(getattr(control, "continuous_update", False) for control in view.controls.values())


def test_a_fourth_primary_control_is_refused() -> None:
    controls = [Slider("workers", "workers", "", 2, 64)] * 4
    with pytest.raises(InputError, match="at most three"):
        Explorer("title", "question", Parameters(), controls, [], explore, scenarios, ())


def test_a_redraw_of_five_workers_is_quick(view: Explorer[Parameters]) -> None:
    seconds = []
    for backups in (0, 1, 2, 3, 4, 1):
        start = time.process_time()
        view.controls["backups"].value = backups
        seconds.append(time.process_time() - start)
    assert min(seconds[1:]) < 0.2
