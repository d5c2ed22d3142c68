"""Shown while work goes on: the name of the work, its progress, and a button that ends it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from distsim.progress import Phase, about


class ProgressBar(widgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """A line, a bar and a cancel button; hidden while no work goes on.

    >>> progress = ProgressBar("learning", lambda: None)
    >>> progress.begin()
    >>> progress.tell(Phase.counted("step", 3, 4))
    >>> progress.bar.value, progress.layout.display
    (75, 'flex')
    """

    def __init__(self, what: str, cancel: Callable[[], object]) -> None:
        self._what, self._cancel = what, cancel
        self.line = widgets.HTML()
        self.bar = widgets.IntProgress(max=100, tooltip=what, layout={"width": "170px"})
        self.button = widgets.Button(description="cancel", tooltip=f"end {what}", layout={"width": "80px"})
        self.button.on_click(self._asked)
        super().__init__([self.line, widgets.HBox([self.bar, self.button])], layout={"display": "none"})

    def begin(self) -> None:
        """Shows the bar at 0."""
        self.bar.value, self.button.disabled = 0, False
        self._say(f"{self._what} …")
        self.layout.display = "flex"

    def tell(self, phase: Phase) -> None:
        """Shows what the work does now, and how far it is."""
        self.bar.value = round(100 * phase.share)
        if not self.button.disabled:
            expected = f" ({about(phase.seconds)} in all)" if phase.seconds else ""
            self._say(f"{self._what}: {phase.doing}{expected}")

    def end(self) -> None:
        """Hides the bar."""
        self.layout.display = "none"

    def _asked(self, _: object) -> None:
        self.button.disabled = True
        self._say(f"{self._what}: ending …")
        self._cancel()

    def _say(self, text: str) -> None:
        self.line.value = f'<span class="distsim-progress" role="status">{escape(text)}</span>'
