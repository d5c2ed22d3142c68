"""What tests of all animations share: the figure's page in a browser, its player, and its frames per second."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pytest

from distsim.figures import Animation

Figure = TypeVar("Figure", bound=Animation)

PLAYER = "document.querySelector('.distsim-animation').player"
GO_TO = f"seconds => {PLAYER}.goTo(seconds)"
SECONDS = f"{PLAYER}.seconds"
_FASTEST, _LEAST_FRAMES, _PLAYED_MILLISECONDS = 60.0, 20.0, 3000
# Frames per second of an empty animation, and of the figure while it plays.
_RATES = f"""async milliseconds => {{
    const rate = (times) => 1000 * (times.length - 1) / (times.at(-1) - times[0]);
    const empty = await new Promise((over) => {{
        const times = [];
        const frame = (now) => {{
            times.push(now);
            if (now - times[0] < milliseconds / 2) requestAnimationFrame(frame);
            else over(times);
        }};
        requestAnimationFrame(frame);
    }});
    const player = {PLAYER};
    player.goTo(0);
    player.frames = [];
    player.play();
    await new Promise((over) => setTimeout(over, milliseconds));
    player.pause();
    return [rate(empty), rate(player.frames)];
}}"""


def opened(page: Any, folder: Path, figure: Figure) -> Figure:
    """The saved page of the figure, shown."""
    figure.save(folder / "figure.html")
    page.goto((folder / "figure.html").as_uri())
    page.locator(".distsim-animation[data-plays]").wait_for()
    return figure


def check_frames(page: Any) -> None:
    """Fails where the figure is redrawn less than 20 times a second.

    A busy machine also slows down an empty animation; it may slow down this one as much.
    """
    measured = []
    for _ in range(2):
        empty, playing = page.evaluate(_RATES, _PLAYED_MILLISECONDS)
        measured.append((empty, playing))
        if playing >= _LEAST_FRAMES * min(empty / _FASTEST, 1.0):
            return
    pytest.fail(f"frames per second, of an empty animation and of the figure: {measured}")
