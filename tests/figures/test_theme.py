"""One meaning per colour and per hatching, for every reader: also without red and green, without blue, in the dark."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

import distsim
from distsim.arrays import Floats
from distsim.explorers.catalogue import EXPLORERS
from distsim.figures import guess_formula_simulation_measurement, guesses, prediction_errors, theme
from distsim.figures.theme import Look
from tests.figures.test_every_figure import OF_A_TRACE, contrast, run

PACKAGE = Path(distsim.__file__).parent
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})|rgba?\(.*\)")
GROUPS: dict[str, Sequence[Look]] = {
    "categories": theme.CATEGORIES, "stages": (theme.PREDICTED, theme.MEASURED, theme.GUESS, theme.FORMULA),
    "runs": theme.RUNS, "links": theme.LINKS, "chunks": theme.CHUNKS, "computing": (theme.COMPUTE, theme.BACKWARD),
    "communicating": (theme.COMMUNICATION, theme.EXPOSED),
}  # fmt: skip
TABLE = [
    *theme.CATEGORIES, *theme.STAGES, theme.BACKWARD, theme.EXPOSED, theme.HELD, *theme.LINKS, *theme.RUNS,
    theme.OTHER_RUNS, *theme.CHUNKS,
]  # fmt: skip
# Machado, Oliveira and Fernandes (2009), table 1, severity 1.0; they act on linear RGB.
SEEN_BY = {
    "all": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
# Ottosson (2020): linear RGB to Oklab, in which distances are those that eyes see; 2 is just noticed side by side.
TO_LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
          [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
TO_LAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
          [0.0259040371, 0.7827717662, -0.8086757660]]  # fmt: skip
LEAST, LEAST_OF_THE_PAIR, LEAST_IN_THE_DARK = 5.0, 15.0, 3.0


def rgb(colour: str) -> Floats:
    return np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])


def darkened(colour: str) -> str:
    """The colour after the filters of the style sheet for dark themes, as the standard Filter Effects defines them."""
    amount, turned = re.findall(r"invert\(([\d.]+)\) hue-rotate\((\d+)deg\)", theme.DARK.read_text("utf-8"))[0]
    inverted = float(amount) + rgb(colour) * (1 - 2 * float(amount))
    angle = np.radians(float(turned))
    of_hue = (
        np.array([[0.213, 0.715, 0.072]] * 3)
        + np.cos(angle) * np.array([[0.787, -0.715, -0.072], [-0.213, 0.285, -0.072], [-0.213, -0.715, 0.928]])
        + np.sin(angle) * np.array([[-0.213, -0.715, 0.928], [0.143, 0.14, -0.283], [-0.787, 0.715, 0.072]])
    )
    return "#" + "".join(f"{round(255 * share):02x}" for share in np.clip(of_hue @ inverted, 0.0, 1.0))


def seen(colour: str, reader: str) -> Floats:
    """The place of a colour in Oklab, times 100."""
    shares = rgb(colour)
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    as_seen = np.clip(np.array(SEEN_BY[reader]) @ linear, 0.0, 1.0)
    return np.asarray(100 * np.array(TO_LAB) @ np.cbrt(np.array(TO_LMS) @ as_seen))


def distance(one: str, other: str) -> float:
    """The least distance of two colours to any reader."""
    return min(float(np.linalg.norm(seen(one, reader) - seen(other, reader))) for reader in SEEN_BY)


def test_distances_are_those_of_eyes() -> None:
    assert distance("#000000", "#ffffff") == pytest.approx(100.0, abs=0.1)
    assert distance("#ff0000", "#ff0000") == 0.0
    red, green = "#b01010", "#5a5a00"  # as good as one colour without red and green
    assert np.linalg.norm(seen(red, "all") - seen(green, "all")) > 4 * distance(red, green)
    assert darkened("#ffffff") == "#121212"
    assert contrast(darkened(theme.INK), darkened(theme.PAPER)) > 10


def test_a_colour_has_one_meaning() -> None:
    colours = [*(look.colour for look in TABLE), theme.DROPPED, theme.INK, theme.GRID, theme.AXIS, theme.LANE]
    assert sorted(set(colours)) == sorted(colours)
    assert f"rgba({','.join(str(round(255 * one)) for one in rgb(theme.MEASURED.colour))},0.18)" == theme.MEASURED_BAND


def test_predicted_and_measured_are_like_nothing_else() -> None:
    pair = (theme.PREDICTED.colour, theme.MEASURED.colour)
    assert distance(*pair) >= LEAST_OF_THE_PAIR
    assert distance(darkened(pair[0]), darkened(pair[1])) >= LEAST_OF_THE_PAIR
    for look in TABLE:
        for stage in (theme.PREDICTED, theme.MEASURED):
            if look is not stage:
                assert distance(look.colour, stage.colour) >= LEAST, (look, stage)
                assert not look.pattern or look.pattern != stage.pattern, (look, stage)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(("scheme", "least"), [(str, LEAST), (darkened, LEAST_IN_THE_DARK)])
def test_what_stands_side_by_side_is_told_apart_by_all(name: str, scheme: Callable[[str], str], least: float) -> None:
    for one, other in itertools.combinations(GROUPS[name], 2):
        assert distance(scheme(one.colour), scheme(other.colour)) >= least, (one, other)


def test_a_hatching_has_one_meaning_among_all_that_a_timeline_or_a_stage_shows() -> None:
    hatched = [look.pattern for look in (*theme.CATEGORIES, *theme.STAGES) if look.pattern]
    assert sorted(set(hatched)) == sorted(hatched)
    assert len({look.pattern for look in theme.RUNS}) == len(theme.RUNS)
    assert {theme.COMMUNICATION.pattern, theme.MEASURED.pattern}.isdisjoint(look.pattern for look in theme.RUNS)


@pytest.mark.parametrize("look", TABLE, ids=lambda look: look.name)
def test_a_bar_is_seen_on_light_and_dark_paper(look: Look) -> None:
    """By its fill or by its outline; a hatching is seen on its fill."""
    drawn = theme.marker(look)
    for scheme in (str, darkened):
        paper, fill, outline = scheme(theme.PAPER), scheme(look.colour), scheme(drawn["line"]["color"])  # type: ignore[index]
        assert contrast(fill, paper) >= 3.0 or contrast(outline, fill) >= 3.0
    assert not look.pattern or contrast(drawn["pattern"]["fgcolor"], look.colour) >= 3.0  # type: ignore[index]


@pytest.mark.parametrize(
    "colour", [theme.DROPPED, *(look.colour for look in (*theme.RUNS, *theme.LINKS, theme.FORMULA))]
)
def test_a_line_is_seen_on_light_and_dark_paper(colour: str) -> None:
    assert contrast(colour, theme.PAPER) >= 3.0
    assert contrast(darkened(colour), darkened(theme.PAPER)) >= 3.0


# What is named in its legend as one of these, and nothing else, has the colour.
MEANINGS = {
    "PREDICTED": r"predicted|simulation|runs, mean|in the run", "MEASURED": r"measured|measurement|in the run",
    "FORMULA": r"formula|expected", "DROPPED": r"dropped|cancelled|diverges|fault|critical path",
    "TOTAL": r"total|error|mean of all links", "COMPUTE": r"comput|forward|one worker's time", "BACKWARD": r"backward",
    "COMMUNICATION": r"communication|all-reduce|send|receive|chunk on its way|new in this round",
    "EXPOSED": r"exposed", "WAIT": r"wait|bubble", "APPLY": r"apply|update", "CHECKPOINT": r"checkpoint",
    "LOST": r"lost", "RESTART": r"restart", "HELD": r"held", "UP": r"up-link|gradient", "DOWN": r"down-link|answer",
    "PARTIAL": r"some workers' parts", "COMPLETE": r"complete",
}  # fmt: skip


def figures() -> Iterator[tuple[str, go.Figure]]:
    """Those of explorers at first, those of a simulated and of a measured trace, and those of the four stages."""
    for name, entry in EXPLORERS.items():
        yield name, entry.explore({}).figure
    for name, figure in OF_A_TRACE.items():
        for producer in ("simulated", "measured"):
            trace = run(name, 4)
            yield name, figure(replace(trace, metadata=trace.metadata | {"producer": producer})).figure
    yield "stages", guess_formula_simulation_measurement(1.0, 2.0, 3.0, [4.0, 5.0]).figure
    yield "guesses", guesses({"a": {"guess": 1.0, "formula": 2.0, "simulation": 3.0, "measurement": 4.0}}).figure
    yield "errors", prediction_errors({"a": 1.0}, {"a": [1.0, 2.0]}).figure


def colours_in(part: Any) -> Iterator[str]:
    """The colours of a trace's lines, marks and areas, without those of scales and of hatchings."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key not in ("colorscale", "colorbar", "pattern", "textfont"):
                yield from colours_in(value)
    elif isinstance(part, (list, tuple)):
        for value in part:
            yield from colours_in(value)
    elif isinstance(part, str) and COLOUR.fullmatch(part):
        yield part


@pytest.mark.more
def test_a_figure_uses_each_colour_for_its_meaning() -> None:
    meant = {getattr(getattr(theme, of), "colour", getattr(theme, of)): of for of in MEANINGS}
    seen, wrong = set(), []
    for place, figure in figures():
        for trace in figure.to_plotly_json()["data"]:
            for of in {meant[colour] for colour in colours_in(trace) if colour in meant}:
                seen.add(of)
                if not re.search(MEANINGS[of], str(trace.get("name")), re.IGNORECASE):
                    wrong.append(f"{place}: {trace.get('name')} has the colour of {of}")
    assert wrong == []
    assert {"PREDICTED", "MEASURED", "FORMULA", "DROPPED", "TOTAL"} <= seen


def test_no_other_module_names_a_colour() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for folder in ("figures", "explorers")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if path.name != "theme.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and COLOUR.fullmatch(node.value)
    ]
    assert found == []
