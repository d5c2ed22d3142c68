"""No figure offers to send itself away: every way in which a figure leaves the package has the same configuration."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import distsim
from distsim.calibration import fitted
from distsim.comparison import compare
from distsim.course.site import reading
from distsim.explorers.picture import Picture
from distsim.figures import Captioned, timeline
from distsim.figures.calibration import page as calibration_page
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.export import page
from distsim.figures.report import html
from distsim.figures.theme import config
from distsim.trace import Trace

MakeTrace = Callable[..., Trace]
PACKAGE = Path(distsim.__file__).parent
# Only these call plotly's own ways out of Python; every other module goes through them.
DOORS = {"figures/captioned.py", "figures/html_page.py", "explorers/picture.py"}
WAYS_OUT = {"to_html", "write_html", "to_json", "write_json", "show", "FigureWidget", "iplot", "plot"}


@pytest.fixture(scope="module")
def shown(make_trace: MakeTrace) -> Captioned:
    return timeline(make_trace())


def test_plotly_is_told_to_send_nothing() -> None:
    told = config()
    assert (told["showSendToCloud"], told["displaylogo"], told["plotlyServerURL"]) == (False, False, "")


def test_a_notebook_and_an_explorer_hold_it(shown: Captioned) -> None:
    bundle = shown.bundle()
    assert bundle[PLOTLY_MIME]["config"] == config()
    assert set(bundle[PLOTLY_MIME]) == {"data", "layout", "config"}
    assert Picture().config == config()


def test_the_site_gives_it_to_figures_that_were_saved_without(shown: Captioned) -> None:
    saved = shown.bundle()
    del saved[PLOTLY_MIME]["config"]
    element = reading._drawn(saved)["text/html"]
    figure = json.loads(re.findall(r'<script type="application/json">(.*)</script>', element)[0])
    assert figure["config"] == config()


def test_every_page_of_figures_holds_it(shown: Captioned, make_trace: MakeTrace) -> None:
    trace = make_trace()
    pages = [
        page(shown),
        html([(compare(trace, make_trace(producer="measured")), trace, make_trace(producer="measured"), [])]),
        calibration_page(fitted([("gather", None, 2, size, np.full(3, size / 1e9)) for size in (1e4, 1e5)], cores=2)),
    ]
    for text in pages:
        without_library = text[text.rindex("Plotly.setPlotConfig") :]
        assert without_library.startswith('Plotly.setPlotConfig({ plotlyServerURL: "" })')
        drawn = without_library.count("Plotly.newPlot(")
        assert drawn > 0
        assert (
            drawn == without_library.count('"showSendToCloud": false') == without_library.count('"displaylogo": false')
        )


def test_no_other_module_has_a_way_out_of_its_own() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "plotly" in path.read_text("utf-8") and WAYS_OUT & _called(path)
    }
    assert found == DOORS


def _called(path: Path) -> set[str]:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return {call.attr for call in calls if isinstance(call, ast.Attribute)}
