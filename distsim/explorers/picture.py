"""A figure that stays in the page and is updated in place.

An `Output` widget gets a new plotly figure at every move: the browser then makes a new renderer, and parses, lays out
and paints a new figure. A `Picture` keeps one, and gives plotly.js the new traces by `Plotly.react`, which draws what
differs. A figure that comes while another is drawn waits, and replaces any figure that waits already.

Plotly.js comes with the installed plotly package. The page takes the copy that JupyterLab's extension loaded, else it
asks the kernel for the file, once per page. No other host is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets
from plotly.offline import get_plotlyjs

from distsim.figures.captioned import Captioned
from distsim.figures.theme import config

ASKED = "plotly.js"


class Picture(anywidget.AnyWidget):
    """Shows one figure at a time; `show` replaces it.

    >>> import plotly.graph_objects as go
    >>> picture = Picture()
    >>> picture.show(Captioned(go.Figure(go.Scatter(x=[1], y=[2])), "One point.", []))
    >>> picture.says, '"type":"scatter"' in picture.figure
    ('One point.', True)
    """

    _esm = Path(__file__).parent / "browser" / "picture.js"
    figure = traitlets.Unicode().tag(sync=True)  # plotly's JSON; empty before the first figure
    config = traitlets.Dict(config()).tag(sync=True)  # of plotly.js
    says = traitlets.Unicode().tag(sync=True)  # the finding, for readers who do not see the picture

    def __init__(self) -> None:
        super().__init__(layout={"width": "100%"})
        self.on_msg(self._asked)

    def show(self, captioned: Captioned) -> None:
        """Draws this figure."""
        with self.hold_sync():
            self.says, self.figure = captioned.summary, captioned.figure.to_json()

    def _asked(self, _: object, message: Any, __: object) -> None:
        if message == {"ask": ASKED}:
            self.send({"is": ASKED}, [get_plotlyjs().encode()])
