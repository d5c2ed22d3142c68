"""What tests of all animations share: the figure's page in a browser, its player, and its frames per second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def check_steps(page: Any, moments: Sequence[float]) -> None:
    """Fails where the figure, played for a reader who prefers less motion, shows other moments than these."""
    assert page.evaluate(f"{PLAYER}.playing") is False
    page.get_by_label("speed").select_option("4")
    page.evaluate(f"""() => {{
        const draw = {PLAYER}.draw.bind({PLAYER});
        window.drawnAt = [];
        {PLAYER}.draw = (seconds) => {{ drawnAt.push(seconds); draw(seconds); }};
    }}""")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("drawnAt.length >= 4")
    assert page.evaluate("drawnAt.slice(0, 4)") == pytest.approx(moments[:4])


@contextmanager
def without_scripts(browser: Any, folder: Path, figure: Animation) -> Iterator[Any]:
    """The saved page of the figure in a browser that runs no scripts; its controls are hidden."""
    figure.save(folder / "figure.html")
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto((folder / "figure.html").as_uri())
        assert page.locator(".controls").is_hidden()
        yield page
    finally:
        context.close()
