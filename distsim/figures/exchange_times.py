"""The time of an exchange against its bytes: a line for each name, and measured times beside the first line."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DASHES, INK, MARKS, MEASURED, PAPER, RUNS, template
from distsim.figures.wording import above_or_below, counted, signed
from distsim.units import show

HEIGHT = 420
LINE_POINTS = 40
MOST_TICKS = 7
Curves = Mapping[str, Callable[[float], float]]  # by name, a function from bytes to seconds
BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DECADES = [part * 10.0**power for power in range(-9, 7) for part in (1, 2, 5)]  # of seconds
FITTED, PREDICTED_SIZE = "measured, fitted to", "measured, not fitted to"


def exchange_times(
    curves: Curves,
    sizes: Sequence[float],
    measured: Mapping[float, float] | None = None,
    fitted: Collection[float] = (),
) -> Captioned:
    """Draws seconds against bytes, both axes logarithmic. Measured sizes also get the error of the first curve.

    curves: for each name, a function from bytes to seconds. sizes: the bytes that the table lists and the lines span.
    measured: seconds by bytes. fitted: the measured sizes to which the first curve was fitted; the curve predicts the
    other sizes.

    Raises InputError where there is no curve or fewer than two sizes, or where a size or a time is not above 0.

    >>> line = {"line": lambda num_bytes: 1e-3 + num_bytes / 1e9}
    >>> exchange_times(line, [1e3, 1e6], measured={1e3: 1e-3, 1e6: 2.5e-3}, fitted=[1e3]).summary
    'Of 1 size that it was not fitted to, the line is farthest from the measured time at 1 MB: 20 % below.'
    """
    times = measured or {}
    every = sorted({*map(float, sizes), *map(float, times)})
    _check(curves, every, times)
    figure = go.Figure()
    reach = np.geomspace(every[0], every[-1], LINE_POINTS).tolist()
    for number, (name, seconds) in enumerate(curves.items()):
        line = {"color": RUNS[number % len(RUNS)].colour, "dash": DASHES[number % len(DASHES)], "width": 2}
        figure.add_scatter(
            x=reach, y=[seconds(size) for size in reach], mode="lines", name=name, line=line, hoverinfo="skip",
        )  # fmt: skip
    for name, fill, symbol, own in (
        (FITTED, MEASURED.colour, MARKS[0], {size: times[size] for size in times if size in fitted}),
        (PREDICTED_SIZE, PAPER, MARKS[1], {size: times[size] for size in times if size not in fitted}),
    ):
        if own:
            mark = {"symbol": symbol, "size": 10, "color": fill, "line": {"color": INK, "width": 1.6}}
            figure.add_scatter(
                x=list(own), y=list(own.values()), mode="markers", name=name, marker=mark,
                text=[_size(size) for size in own],
                hovertemplate="%{text}: %{y:.3s}s<extra></extra>",
            )  # fmt: skip
    figure.update_layout(template=template(), height=HEIGHT, margin={"t": 50, "b": 50, "l": 10, "r": 34})
    ticks = every[:: -(-len(every) // MOST_TICKS)]
    figure.update_xaxes(
        type="log", title_text="bytes of one rank", tickvals=ticks, ticktext=[_size(size) for size in ticks]
    )
    named = [show(seconds, "second") for seconds in DECADES]
    figure.update_yaxes(type="log", title_text="time of an exchange", tickvals=DECADES, ticktext=named)
    first = next(iter(curves))
    errors = {size: 100.0 * (curves[first](size) / seconds - 1.0) for size, seconds in times.items()}
    return Captioned(figure, _sentence(curves, every, times, errors, fitted), _table(curves, every, times, errors))


def _size(num_bytes: float) -> str:
    """Bytes in words: whole numbers of KiB, MiB or GiB, and other numbers to three digits."""
    for unit, size in BINARY.items():
        if (number := num_bytes / size) in range(1, 1024):
            return f"{number:.0f} {unit}"
    return show(num_bytes, "byte")


def _check(curves: Curves, sizes: Sequence[float], measured: Mapping[float, float]) -> None:
    if not curves:
        raise InputError.of("exchange_times(curves)", dict(curves), "has none to draw", "pass at least one")
    if len(sizes) < 2 or not all(0.0 < size < math.inf for size in sizes):
        rule = "must be at least two numbers of bytes above 0"
        raise InputError.of("exchange_times(sizes)", list(sizes), rule, "pass such as [1e3, 1e6]")
    for name, seconds in curves.items():
        if not all(0.0 < seconds(size) < math.inf for size in sizes):
            rule = "must be above 0 seconds at every size, which an axis in powers of ten needs"
            raise InputError.of(f"exchange_times({name!r})", [seconds(size) for size in sizes], rule, "give a latency")
    if not all(0.0 < seconds < math.inf for seconds in measured.values()):
        rule = "must be seconds above 0"
        raise InputError.of("exchange_times(measured)", dict(measured), rule, "leave out what was not measured")


def _sentence(
    curves: Curves,
    sizes: Sequence[float],
    measured: Mapping[float, float],
    errors: Mapping[float, float],
    fitted: Collection[float],
) -> str:
    predicted = {size: error for size, error in errors.items() if size not in fitted}
    if errors:
        judged, which = (predicted, "not fitted") if predicted else (errors, "fitted")
        worst = max(judged, key=lambda size: abs(judged[size]))
        name, predict = next(iter(curves.items()))
        return (
            f"Of {counted(len(judged), 'size')} that it was {which} to, the {name} is farthest from the measured time "
            f"at {_size(worst)}: {above_or_below(predict(worst), measured[worst])}."
        )
    small, large = sizes[0], sizes[-1]
    first, last = (min(curves, key=lambda name: curves[name](size)) for size in (small, large))
    told = [
        f"at {_size(size)}, with {show(curves[name](size), 'second')}" for name, size in ((first, small), (last, large))
    ]
    joined = ", and " if first == last else f"; {last} is the fastest "
    return f"{first[:1].upper()}{first[1:]} is the fastest {joined.join(told)}."


def _table(
    curves: Curves, sizes: Sequence[float], measured: Mapping[float, float], errors: Mapping[float, float]
) -> list[Row]:
    rows: list[Row] = []
    for size in sizes:
        row: dict[str, str | float | int | None] = {"size": _size(size)}
        row |= {f"{name} (ms)": 1e3 * seconds(size) for name, seconds in curves.items()}
        if measured:
            row["measured (ms)"] = 1e3 * measured[size] if size in measured else None
            row["error"] = signed(errors[size], "%") if size in errors else None
        rows.append(row)
    return rows
