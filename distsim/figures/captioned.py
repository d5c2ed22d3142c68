"""A figure with its text: one sentence with the finding, and the numbers as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from distsim.figures.theme import config, dark_style

PLOTLY_MIME = "application/vnd.plotly.v1+json"
MOST_APART = 1e5  # the largest number of a column over the least; beyond this ratio each number has its own decimals
Row = Mapping[str, str | float | int | None]


@dataclass(frozen=True)
class Captioned:
    """A figure, one sentence with its finding, and a table of its numbers (rows of column -> value).

    A notebook cell that ends in a `Captioned` shows all three.

    >>> Captioned(go.Figure(), "Nothing happens.", [{"step": 1, "time (ms)": 2.5}]).table[0]["time (ms)"]
    2.5
    """

    figure: go.Figure
    summary: str
    table: Sequence[Row]

    def caption_html(self) -> str:
        """The sentence and the table as HTML, to show under the figure."""
        return f'<p class="distsim-summary">{escape(self.summary)}</p>{table_html(self.table)}'

    def save(self, path: str | Path) -> None:
        """Writes the figure as .png, .svg or .html by the suffix of `path`; HTML also holds the sentence and the table.

        Raises InputError where the suffix is unknown, the file cannot be written, or a picture needs a Chromium that
        is not installed.
        """
        from distsim.figures.export import save

        save(self, Path(path))

    def bundle(self) -> dict[str, Any]:
        """The output that a notebook stores: plotly's JSON, and the sentence for programs that cannot draw the JSON."""
        return {PLOTLY_MIME: self.drawing(), "text/plain": self.summary}

    def drawing(self) -> dict[str, Any]:
        """The arguments of plotly.js: `data`, `layout`, `frames` of an animation, and `config`.

        >>> Captioned(go.Figure(), "Nothing happens.", []).drawing()["config"]["plotlyServerURL"]
        ''
        """
        found: dict[str, Any] = json.loads(self.figure.to_json())
        return found | {"config": config()}

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(self.bundle(), raw=True)  # type: ignore[no-untyped-call]
        display(HTML(dark_style() + self.caption_html()))  # type: ignore[no-untyped-call]


def table_html(rows: Sequence[Row], caption: str = "") -> str:
    """An HTML table with a head. The first column names the row. None is a dash.

    The numbers of a column have the same decimals, and the largest has four digits.

    >>> table_html([{"run": "simulated", "total (s)": 2.51234}])[-76:]
    '<tbody><tr><th scope="row">simulated</th><td>2.512</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    columns = list(rows[0])
    texts = {column: column_texts([row[column] for row in rows]) for column in columns}
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>"
        + f'<th scope="row">{escape(texts[columns[0]][place])}</th>'
        + "".join(f"<td>{escape(texts[column][place])}</td>" for column in columns[1:])
        + "</tr>"
        for place in range(len(rows))
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<table class="distsim-table">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def column_texts(values: Sequence[Any]) -> list[str]:
    """The texts of a column of a table: its numbers have the same decimals, unless they are very far apart.

    The largest number has four digits, and the least has at least two.

    >>> column_texts([86.448, 7.5, None]), column_texts([50.0, 0.0]), column_texts([12345.6, 0.002])
    (['86.45', '7.50', '–'], ['50', '0'], ['12,346', '0.002'])
    """
    numbers = [abs(value) for value in values if isinstance(value, (int, float))]
    sizes = [number for number in numbers if number and math.isfinite(number)]
    if not any(isinstance(value, float) for value in values) or not sizes or max(sizes) > MOST_APART * min(sizes):
        return [shown(value) for value in values]
    largest, least = (math.floor(math.log10(size)) for size in (max(sizes), min(sizes)))
    decimals = max(3 - max(largest, -1), 1 - least, 0)
    while decimals and all(math.isclose(round(size, decimals), round(size, decimals - 1)) for size in sizes):
        decimals -= 1
    return [f"{value:z,.{decimals}f}" if isinstance(value, (int, float)) else shown(value) for value in values]


def shown(value: Any) -> str:
    """The text of a value in a table.

    >>> shown(2.51234), shown(12345.6), shown(37), shown(None), shown(-0.0)
    ('2.512', '12,346', '37', '–', '0')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        if value and abs(value) < 1e-3:
            return f"{value:.3g}"
        digits = 3 - min(3, len(str(int(abs(value)))) - 1) if abs(value) >= 1 else 4
        text = f"{value:z,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:,}" if isinstance(value, int) else str(value)
