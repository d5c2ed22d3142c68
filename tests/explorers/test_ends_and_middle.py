"""Every explorer at both ends and in the middle of every control: what the figure, and then the browser, draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import nbformat
import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.explorer import Explorer
from distsim.explorers.notebooks import notebook
from tests.explorers.drives import values
from tests.jupyterlab import HAS_RUN, Lab, run_all

SOME = ("collectives", "backup_workers", "ring_or_server")  # in the browser by `make test-more`


def ends_and_middle(view: Explorer[Any], field: str) -> list[Any]:
    """The first, the middle and the last value of a control; nothing for a line of text."""
    found = values(view, field)
    return [found[place] for place in places(len(found))] if found else []


def places(count: int) -> list[int]:
    """The first, the middle and the last of so many places."""
    return sorted({0, count // 2, count - 1})


@pytest.mark.parametrize("name", EXPLORERS)
def test_each_figure_has_its_own_colours_and_finite_numbers(name: str) -> None:
    view, drawn, faults = EXPLORERS[name].open(), 0, []
    for field, control in view.controls.items():
        start = control.value
        for value in ends_and_middle(view, field):
            control.value = value
            if view.message.value or view.shown is None:
                continue  # an impossible combination, and the message says so
            drawn += 1
            faults += [f"{field} = {value}: {fault}" for fault in faults_of(view.shown.figure)]
        control.value = start
    assert drawn > 2 * len(view.controls) - 2
    assert not faults, faults


def faults_of(figure: go.Figure) -> list[str]:
    """What a reader should not see, by the figure's own data."""
    found = []
    for number, trace in enumerate(figure.data):
        place = f"trace {number} ({trace.type}, {trace.name})"
        if trace.type == "heatmap":
            if not (trace.colorscale or trace.coloraxis):
                found.append(f"{place} has plotly's own colours")
            if not np.isfinite(numbers(trace.z)).any():
                found.append(f"{place} has no finite number")
        elif trace.visible is not False and not _coloured(trace):
            found.append(f"{place} has plotly's own colour")
        for axis in ("x", "y"):
            along = getattr(trace, axis, None)
            if along is not None and np.isinf(numbers(along)).any():
                found.append(f"{place} has an infinite {axis}")
    for axis in figure.select_xaxes():
        found += _of_axis(axis)
    for axis in figure.select_yaxes():
        found += _of_axis(axis)
    return found


def _of_axis(axis: Any) -> Iterator[str]:
    if axis.range is not None:
        low, high = axis.range
        if None not in (low, high) and not (np.isfinite([float(low), float(high)]).all() and low != high):
            yield f"{axis.plotly_name} from {low} to {high}"


def _coloured(trace: Any) -> bool:
    """Whether a colour is set, of the line, of the marks, or of the area; each follows the others. Text has a font."""
    if getattr(trace, "mode", None) == "text":
        return True
    parts = [getattr(trace, part, None) for part in ("line", "marker")]
    colours = [part.color for part in parts if part is not None] + [getattr(trace, "fillcolor", None)]
    return any(colour is not None for colour in colours)


def numbers(values: Any) -> Any:
    """Values as floats; what is no number becomes 0."""
    flat = np.asarray(values, dtype=object).ravel()
    return np.array([value if isinstance(value, (int, float, np.number)) else 0.0 for value in flat], dtype=float)


def test_a_figure_with_faults_has_them_told() -> None:
    figure = go.Figure([go.Heatmap(z=[[1, 2]]), go.Scatter(x=[1.0, float("inf")], y=[1, 2])])
    figure.update_xaxes(range=[2, 2])
    assert len(faults_of(figure)) == 4
    figure.add_scatter(x=[1], y=[1], mode="text", text="1")
    assert len(faults_of(figure)) == 4


# By the browser: its own trace data and its drawing.
FAULTS = """() => {
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    const faults = [];
    const own = new Set(plot._fullLayout.colorway);
    for (const trace of plot._fullData.filter((each) => each.visible === true)) {
        const place = `${trace.type} ${trace.name}`;
        if (trace.type === "heatmap") {
            if (!trace._input.colorscale && !trace._input.coloraxis) faults.push(`${place}: plotly's own colours`);
            if (!isFinite(trace.zmin) || !isFinite(trace.zmax)) faults.push(`${place}: no scale`);
            continue;
        }
        const marks = !trace.mode || trace.mode.includes("markers");
        const lines = !trace.mode || trace.mode.includes("lines");
        if (marks && trace.marker && own.has(trace.marker.color)) faults.push(`${place}: plotly's own colour`);
        if (trace.type === "scatter" && lines && trace.line && trace.line.width && own.has(trace.line.color))
            faults.push(`${place}: plotly's own line colour`);
    }
    for (const [name, axis] of Object.entries(plot._fullLayout)) {
        if (!/^[xy]axis\\d*$/.test(name)) continue;
        const [low, high] = axis.range.map(Number);
        if (axis.type === "linear" && !(isFinite(low) && isFinite(high) && low !== high))
            faults.push(`${name} from ${axis.range}`);
    }
    for (const mark of plot.querySelectorAll("path, rect, text, g, use"))
        for (const name of ["d", "transform", "x", "y", "width", "height"])
            if ((mark.getAttribute(name) || "").includes("NaN")) faults.push(`NaN in ${name} of ${mark.tagName}`);
    const page = plot.querySelector(".main-svg").getBoundingClientRect();
    const kinds = ".annotation-text, .g-gtitle text, .infolayer [class*=title] text, .legendtext, .cbaxis text";
    const texts = [...plot.querySelectorAll(kinds)].filter((text) => text.textContent.trim() &&
        text.getBoundingClientRect().width && getComputedStyle(text).opacity !== "0");
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const say = (number) => JSON.stringify(texts[number].textContent.slice(0, 40));
    boxes.forEach((box, one) => {
        if (box.left < page.left - 2 || box.right > page.right + 2 || box.top < page.top - 2 ||
            box.bottom > page.bottom + 2) faults.push(`${say(one)} is cut off`);
        boxes.slice(0, one).forEach((other, two) => {
            const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
            const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
            if (wide > 3 && high > 3) faults.push(`${say(one)} lies over ${say(two)}`);
        });
    });
    return [...new Set(faults)];
}"""
# Of an input: its value or place.
VALUE = """input => input.type === "checkbox" ? input.checked : input.tagName === "SELECT" ? input.selectedIndex :
    Number(input.value)"""
# Moves an input as a mouse does, and waits until the browser has drawn: the line on the change comes after the figure.
MOVE = f"""async ([input, value]) => {{
    const said = () => document.querySelector(".distsim-changed").textContent +
        (document.querySelector(".distsim-message") || {{}}).textContent;
    const before = said();
    if (({VALUE})(input) === value) return;
    if (input.type === "checkbox") input.checked = value;
    else if (input.tagName === "SELECT") input.selectedIndex = value;
    else input.value = value;
    input.dispatchEvent(new Event("input"));
    input.dispatchEvent(new Event("change"));
    const picture = document.querySelector(".distsim-picture");
    for (const end = performance.now() + 20000; said() === before || picture.getAttribute("aria-busy") === "true";) {{
        if (performance.now() > end) throw new Error(`nothing is drawn: ${{before}}`);
        await new Promise(requestAnimationFrame);
    }}
}}"""
BOUNDS = f"""input => {{
    const now = ({VALUE})(input);
    if (input.type === "checkbox") return [now, 0, 1, 1];
    if (input.tagName === "SELECT") return [now, 0, input.options.length - 1, 1];
    return [now, +input.min, +input.max, +input.step];
}}"""


def stage(name: str) -> Sequence[pytest.MarkDecorator]:
    """`make test-more` drives some explorers, `make test-all` the others."""
    return [pytest.mark.more if name in SOME else pytest.mark.thorough]


@pytest.mark.chromium
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [pytest.param(name, marks=stage(name)) for name in EXPLORERS])
def test_each_picture_is_drawn_well_by_the_browser(page: Any, problems: list[str], lab: Lab, name: str) -> None:
    made = notebook(EXPLORERS[name])
    made.cells[1].execution_count = None
    file = f"ends-{name}.ipynb"
    nbformat.write(made, lab.folder / file)
    run_all(page, lab, file)
    page.wait_for_function(HAS_RUN)
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    explorer.get_by_role("button", name="more controls").click()
    explorer.locator(".distsim-fold[aria-expanded=true]").wait_for()
    faults = [f"at first: {fault}" for fault in page.evaluate(FAULTS)]
    inputs = explorer.locator("input:visible:not([type=text]), select:visible")
    for number in range(inputs.count()):
        control = inputs.nth(number).element_handle()
        said = control.evaluate("input => input.labels[0].textContent")
        start, low, high, step = control.evaluate(BOUNDS)
        for place in places(round((high - low) / step) + 1):
            value = round(low + step * place, 9)
            page.evaluate(MOVE, [control, bool(value) if isinstance(start, bool) else value])
            faults += [f"{said} at {value}: {fault}" for fault in page.evaluate(FAULTS)]
        page.evaluate(MOVE, [control, start])
    assert not faults, "\n".join(faults)
    assert not problems, problems
