"""A figure with its text: one sentence with the finding, and the numbers as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from distsim.figures.theme import config, dark_style

PLOTLY_MIME = "application/vnd.plotly.v1+json"
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
    """An HTML table with a head. The first column names the row. Numbers have four digits; None is a dash.

    >>> table_html([{"run": "simulated", "total (s)": 2.51234}])[-76:]
    '<tbody><tr><th scope="row">simulated</th><td>2.512</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    columns = list(rows[0])
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>"
        + f'<th scope="row">{escape(shown(row[columns[0]]))}</th>'
        + "".join(f"<td>{escape(shown(row[column]))}</td>" for column in columns[1:])
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<table class="distsim-table">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


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
