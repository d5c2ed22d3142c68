"""The time from a key press to the finished redraw of each explorer, in a real browser: `make bench-browser`.

JupyterLab shows an explorer below a slider whose figure is empty. The bench moves a control of the explorer and the
empty slider in turns. An empty redraw takes the same way as the explorer's: key, slider, kernel, picture, plotly,
screen. The difference of both times is the time that the explorer takes for its simulation, its frame and its figure.

Other programs on the machine lengthen both times. So the bench also measures how much longer SimPy's own timeouts take
than on a calm machine, and divides the difference by that, as `distsim bench` does.

A redraw is finished when the line above the figure tells the change and nothing of the explorer changes any more; the
time ends with the frame that shows the last change.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import nbformat
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Control, Pick, Slider, Switch, Text
from distsim.explorers.explorer import Explorer
from distsim.explorers.notebooks import notebook
from distsim.progress import progress
from distsim.speed import floor
from tests.explorers.conftest import CHROMIUM, FLAGS
from tests.explorers.drives import control as element_of
from tests.jupyterlab import HAS_RUN, Lab, run_all, running

BOUND_MILLISECONDS = 400.0  # that a redraw may take longer than an empty one, both at the 95th percentile
QUICK_BOUND_MILLISECONDS = 600.0  # from the last of some quick presses to the finished redraw
PERCENTILE = 0.95
MOVES, QUICK_GAP_MILLISECONDS = 10, 33
QUICK_PRESSES = 11  # an odd number: the last value differs from the first
DEFAULT, LARGEST = "default", "largest"
WIDTH, HEIGHT = 1400, 1000

EXPLORER, EMPTY = ".distsim-explorer", ".distsim-empty"
# Above the explorer, in the same output: a slider, and a figure without data that shows the slider's value.
BOTH = """
import ipywidgets as widgets
import plotly.graph_objects as go
from distsim.explorers.picture import Picture
from distsim.figures.captioned import Captioned

slider, picture = widgets.IntSlider(max=1000, continuous_update=False), Picture()

def draw(_):
    figure = go.Figure(layout={"title": {"text": str(slider.value)}, "height": 120})
    picture.show(Captioned(figure, str(slider.value), []))

slider.observe(draw, names="value")
draw(None)
empty = widgets.VBox([slider, picture])
empty.add_class("distsim-empty")
widgets.VBox([empty, explorer()])
"""
# What tells that a redraw is over, besides quiet: a text that differs from the text before the key.
TEXT = {EXPLORER: ".distsim-changed", EMPTY: ".gtitle"}
FINISHED = {EXPLORER: "^(Changed|Nothing changed|The figure shows the last|Cancelled)", EMPTY: "^[0-9]+$"}
WATCH = """([root, text]) => {
    const place = document.querySelector(root), state = {start: null, last: null};
    const now = () => place.querySelector(text)?.textContent.trim() ?? "";
    state.before = now();
    document.addEventListener("keydown", () => { state.start = performance.now(); state.last = null; },
        {capture: true, signal: (state.ender = new AbortController()).signal});
    state.observer = new MutationObserver(() => {
        if (state.start === null) return;
        const of = state.start;
        requestAnimationFrame(() => setTimeout(() => { if (of === state.start) state.last = performance.now(); }));
    });
    state.observer.observe(place, {subtree: true, childList: true, attributes: true, characterData: true});
    state.now = now;
    window.distsimRedraw = state;
}"""
IS_FINISHED = """([pattern, quiet]) => {
    const state = window.distsimRedraw;
    if (state.last === null || performance.now() - state.last < quiet) return false;
    const text = state.now();
    return text !== state.before && new RegExp(pattern).test(text);
}"""
TOOK = """() => {
    const state = window.distsimRedraw;
    state.observer.disconnect();
    state.ender.abort();
    return state.last - state.start;
}"""
QUIET_MILLISECONDS = 400
PATIENCE_MILLISECONDS = 60_000


@dataclass(frozen=True)
class Setting:
    """A control at its default or at its largest possible setting, and the keys between that and the next value.

    heading: the text over the control. to: the keys that lead there from the default. there, back: the key to the
    neighbouring value, and the key that returns.
    """

    explorer: str
    heading: str
    setting: str
    to: tuple[str, ...]
    there: str
    back: str


@dataclass(frozen=True)
class Redraw:
    """What was measured of one setting, in milliseconds; `empty` of the same page, in turns.

    slowness: how many times longer SimPy's own timeouts took than on a calm machine, in the calmest turn; at least 1.
    """

    explorer: str
    control: str
    setting: str
    moves: int
    median: float
    percentile_95: float
    empty_median: float
    empty_percentile_95: float
    slowness: float
    bound: float

    @property
    def difference(self) -> float:
        """How much longer than an empty redraw this one takes; both at the 95th percentile."""
        return self.percentile_95 - self.empty_percentile_95

    @property
    def scaled(self) -> float:
        """The difference on a calm machine."""
        return self.difference / self.slowness

    @property
    def met(self) -> bool:
        """Whether the bound is kept."""
        return self.scaled <= self.bound


@dataclass(frozen=True)
class Quick:
    """The milliseconds from the last of some quick presses to the finished redraw, in several attempts."""

    explorer: str
    control: str
    milliseconds: list[float]
    slowness: float

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound, on a calm machine."""
        return float(np.median(self.milliseconds)) / self.slowness <= QUICK_BOUND_MILLISECONDS


def settings(name: str) -> list[Setting]:
    """Every control of an explorer, at its default and at its largest possible setting, if that is another one.

    A line of text has no largest setting: its moves write a path that does not exist, and delete it.

    >>> [setting.to for setting in settings("collectives") if setting.heading.startswith("workers")]
    [(), ('End',)]
    """
    module = importlib.import_module(f"distsim.explorers.{name}")
    found = []
    for control in controls(EXPLORERS[name].open()):
        heading = control.heading or control.label
        default = getattr(module.Parameters(), control.field)
        if isinstance(control, Text):
            found.append(Setting(name, heading, DEFAULT, (), "x", "Backspace"))
            continue
        if isinstance(control, Switch):
            found.append(Setting(name, heading, DEFAULT, (), "Space", "Space"))
            found.append(Setting(name, heading, LARGEST, ("Space",), "Space", "Space"))
            continue
        up, down = ("ArrowDown", "ArrowUp") if isinstance(control, Pick) else ("ArrowRight", "ArrowLeft")
        values = list(control.values)
        place = values.index(default)
        allowed = [number for number, value in enumerate(values) if possible(module, control.field, value)]
        there, back = (up, down) if place + 1 in allowed else (down, up)
        found.append(Setting(name, heading, DEFAULT, (), there, back))
        if (most := max(allowed)) != place:
            found.append(Setting(name, heading, LARGEST, ("End", *[down] * (len(values) - 1 - most)), down, up))
    return found


def controls(view: Explorer[Any]) -> list[Control]:
    """The controls of an explorer, the primary ones first."""
    return view._all


def possible(module: Any, field: str, value: Any) -> bool:
    """Whether the explorer shows a figure for this value, all other controls at their defaults."""
    parameters = replace(module.Parameters(), **{field: value})
    try:
        module.explore(parameters)
    except InputError:
        return False
    return True


@contextmanager
def opened(lab: Lab, browser: Any, name: str) -> Iterator[Any]:
    """A page of JupyterLab with the explorer below the empty slider, both drawn."""
    made = notebook(EXPLORERS[name])
    made.cells[1].source = f"from distsim.explorers.{name} import explorer\n{BOTH}"
    made.cells[1].execution_count = None
    file = f"{name}-{len(list(lab.folder.iterdir()))}.ipynb"
    nbformat.write(made, lab.folder / file)
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        run_all(page, lab, file)
        page.wait_for_function(HAS_RUN)
        for part in (EMPTY, EXPLORER):
            page.locator(f"{part} .js-plotly-plot .main-svg").first.wait_for(state="visible")
        page.locator(EXPLORER).get_by_role("button", name="more controls").click()
        page.locator(f"{EXPLORER} .distsim-control").last.wait_for(state="visible")
        yield page
    finally:
        context.close()


def milliseconds(page: Any, part: str, keys: Sequence[str], gap: float = 0.0) -> float:
    """From the last of the keys to the finished redraw of this part of the page. The control has the focus."""
    page.evaluate(WATCH, [part, TEXT[part]])
    for key in keys:
        page.keyboard.press(key)
        if gap:
            page.wait_for_timeout(gap)
    page.wait_for_function(IS_FINISHED, arg=[FINISHED[part], QUIET_MILLISECONDS])
    return float(page.evaluate(TOOK))


def measure(page: Any, setting: Setting, moves: int = MOVES) -> Redraw:
    """Moves the control and the empty slider in turns. The first move of both does not count."""
    explorer = page.locator(EXPLORER)
    target = element_of(explorer, setting.heading)
    empty = page.locator(f"{EMPTY} .noUi-handle")
    writes = setting.there == "x"
    if setting.to:
        target.focus()
        milliseconds(page, EXPLORER, setting.to, QUICK_GAP_MILLISECONDS)
    own, of_empty, slow = [], [], []
    for number in range(moves + 1):
        key = setting.back if number % 2 else setting.there
        target.focus()
        own.append(milliseconds(page, EXPLORER, [key, "Enter"] if writes else [key]))
        empty.focus()
        of_empty.append(milliseconds(page, EMPTY, ["ArrowRight"]))
        slow.append(slowness())
    return Redraw(
        setting.explorer, setting.heading, setting.setting, moves, *_quantiles(own[1:]), *_quantiles(of_empty[1:]),
        max(1.0, min(slow)), BOUND_MILLISECONDS,
    )  # fmt: skip


def _quantiles(found: Sequence[float]) -> tuple[float, float]:
    return float(np.median(found)), float(np.quantile(found, PERCENTILE))


def reset(page: Any) -> None:
    """All controls of the explorer at their defaults."""
    page.locator(EXPLORER).get_by_role("button", name="reset", exact=True).focus()
    milliseconds(page, EXPLORER, ["Enter"])


def measure_quick(page: Any, name: str, attempts: int = 3) -> Quick:
    """Some quick presses on the explorer's primary control with the most values, and back."""
    primary = [control for control in controls(EXPLORERS[name].open())[:3] if isinstance(control, Slider | Choice)]
    control = max(primary, key=lambda one: len(one.values))
    values = list(control.values)
    place = values.index(getattr(EXPLORERS[name].start(), control.field))
    found, slow = [], []
    presses = to_and_fro(place, len(values), attempts * QUICK_PRESSES)
    for first in range(0, len(presses), QUICK_PRESSES):
        keys = presses[first : first + QUICK_PRESSES]
        element_of(page.locator(EXPLORER), control.heading).focus()
        found.append(milliseconds(page, EXPLORER, keys, QUICK_GAP_MILLISECONDS))
        slow.append(slowness())
    return Quick(name, control.heading, found, max(1.0, min(slow)))


def to_and_fro(place: int, values: int, presses: int) -> list[str]:
    """Keys that lead from a place of a slider to its end, then to its beginning, and so on; each moves it.

    >>> to_and_fro(1, 3, 4)
    ['ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowRight']
    """
    places = [*range(values), *range(values - 2, 0, -1)]  # once to and fro
    moves = [places[(place + number) % len(places)] for number in range(presses + 1)]
    return ["ArrowRight" if later > earlier else "ArrowLeft" for earlier, later in pairwise(moves)]


def slowness() -> float:
    """How many times longer than on a calm machine SimPy's own timeouts take, by the clock on the wall."""
    start = time.perf_counter()
    floor.timeouts_per_second()
    calm = floor.SAMPLES * floor.PROCESSES * floor.TIMEOUTS / floor.NOMINAL_TIMEOUTS_PER_SECOND
    return (time.perf_counter() - start) / calm


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium that draws by software."""
    if CHROMIUM is None:
        raise click.UsageError("there is no Chromium on the PATH. Cure: install the package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


@click.command()
@click.option("--explorer", "names", multiple=True, type=click.Choice(list(EXPLORERS)), help="Only this; repeatable.")
@click.option("--control", "only", metavar="TEXT", default="", help="Only controls whose heading holds TEXT.")
@click.option("--moves", default=MOVES, show_default=True, type=click.IntRange(2), help="Redraws of each setting.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write all figures to this file.")
def main(names: Sequence[str], only: str, moves: int, file: Path | None) -> None:
    """Measure how long redraws take in a browser, beside an empty redraw of the same page.

    Every control of every explorer is measured at its default and at its largest possible setting. The whole takes
    about 40 minutes on two quiet cores. A missed bound is no failure: the exit code is 0.
    """
    redraws: list[Redraw] = []
    quick: list[Quick] = []
    out = Console(width=150)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as lab, chromium() as browser:
        for name in names or EXPLORERS:
            chosen = [setting for setting in settings(name) if only in setting.heading]
            with opened(lab, browser, name) as page:
                for setting in progress(chosen, name):
                    redraws.append(measure(page, setting, moves))
                    out.print(_line(redraws[-1]), highlight=False)
                    reset(page)
                if not only:
                    quick.append(measure_quick(page, name))
    out.print(table(redraws))
    if quick:
        out.print(quick_table(quick))
    missed = sum(not redraw.met for redraw in redraws), sum(not one.met for one in quick)
    out.print(f"{len(redraws) - missed[0]} of {len(redraws)} bounds of redraws met.")
    if quick:
        out.print(f"{len(quick) - missed[1]} of {len(quick)} bounds of quick presses met.")
    every: dict[str, Sequence[Redraw | Quick]] = {"redraws": redraws, "quick presses": quick}
    if file is not None:
        found = {name: [asdict(one) | {"met": one.met} for one in rows] for name, rows in every.items()}
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _line(found: Redraw) -> str:
    return (
        f"{found.explorer}, {found.control}, {found.setting}: {found.median:.0f} ms, "
        f"empty {found.empty_median:.0f} ms, machine {found.slowness:.1f} times slower than calm"
    )


def table(redraws: Sequence[Redraw]) -> Table:
    """All settings, in milliseconds."""
    drawn = Table(title="redraws (ms)", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("explorer", "control", "setting"):
        drawn.add_column(column)
    for column in ("median", "95 %", "empty", "95 %", "difference", "slowness", "scaled", "bound", ""):
        drawn.add_column(column, justify="right", no_wrap=True)
    for one in redraws:
        numbers = one.median, one.percentile_95, one.empty_median, one.empty_percentile_95, one.difference
        drawn.add_row(
            one.explorer, one.control, one.setting, *(f"{number:.0f}" for number in numbers), f"{one.slowness:.1f}",
            f"{one.scaled:.0f}", f"{one.bound:.0f}", "met" if one.met else "MISSED",
        )  # fmt: skip
    return drawn


def quick_table(found: Sequence[Quick]) -> Table:
    """From the last quick press to its redraw, in milliseconds."""
    drawn = Table(
        title=f"{QUICK_PRESSES} quick presses (ms)", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in ("explorer", "control", "median", "worst", "slowness", "scaled", "bound", ""):
        drawn.add_column(column)
    for one in found:
        median, worst = float(np.median(one.milliseconds)), max(one.milliseconds)
        drawn.add_row(
            one.explorer, one.control, f"{median:.0f}", f"{worst:.0f}", f"{one.slowness:.1f}",
            f"{median / one.slowness:.0f}", f"{QUICK_BOUND_MILLISECONDS:.0f}", "met" if one.met else "MISSED",
        )  # fmt: skip
    return drawn


if __name__ == "__main__":
    main()
