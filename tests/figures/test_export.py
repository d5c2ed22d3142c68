"""Figures as files: what they hold, that they stand alone, and what is said where they cannot be made."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from distsim.collectives import ring
from distsim.errors import InputError
from distsim.figures import Captioned, collective, timeline
from distsim.trace import Trace

MakeTrace = Callable[..., Trace]


@pytest.fixture(scope="module")
def shown(make_trace: MakeTrace) -> Captioned:
    """A timeline."""
    return timeline(make_trace())


def test_html_stands_alone_with_sentence_and_table(shown: Captioned, tmp_path: Path) -> None:
    shown.save(tmp_path / "figure.html")
    text = (tmp_path / "figure.html").read_text("utf-8")
    assert shown.summary in text
    assert text.count("<table") == 1
    assert not re.search("<script[^>]* src=", text)
    without_scripts = re.sub("<script.*?</script>", "", text, flags=re.DOTALL)
    assert "src=" not in without_scripts
    assert "http" not in without_scripts
    assert [path.name for path in tmp_path.iterdir()] == ["figure.html"]


@pytest.mark.parametrize(
    ("file", "title"), [("two_rings.html", "two rings"), ("a<b & c.HTML", "a&lt;b &amp; c"), ("__.html", "figure")]
)
def test_a_page_has_the_files_name_as_its_title(file: str, title: str, shown: Captioned, tmp_path: Path) -> None:
    shown.save(tmp_path / file)
    text = (tmp_path / file).read_text("utf-8")
    assert f"<title>distsim: {title}</title>" in text
    assert f"<h1>{title[0].upper()}{title[1:]}</h1>" in text


@pytest.mark.chromium
@pytest.mark.more
def test_png_and_svg_are_pictures_of_the_figures_size(shown: Captioned, tmp_path: Path) -> None:
    height = shown.figure.layout.height
    shown.save(tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (2 * 1000, 2 * height)
    shown.save(str(tmp_path / "figure.SVG"))
    picture = ElementTree.parse(tmp_path / "figure.SVG").getroot()
    assert (picture.get("width"), picture.get("height")) == ("1000", str(height))
    texts = {"".join(found.itertext()) for found in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"worker 0", "server 4", "compute", "time (ms)"} <= texts


@pytest.mark.chromium
@pytest.mark.more
def test_a_picture_of_an_animation_has_no_buttons_and_the_figure_keeps_them(tmp_path: Path) -> None:
    animation = collective(ring(3))
    animation.save(tmp_path / "ring.svg")
    text = (tmp_path / "ring.svg").read_text("utf-8")
    assert "rank 0" in text
    assert "Play" not in text
    assert len(animation.figure.layout.sliders) == 1


@pytest.mark.parametrize("name", ["figure", "figure.gif", "figure.svg.txt"])
def test_an_unknown_format_is_refused(shown: Captioned, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="must end in .html, .png or .svg"):  # noqa: RUF043
        shown.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_there_is_not_is_told_before_anything_is_drawn(shown: Captioned, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its folder does not exist"):
        shown.save(tmp_path / "nowhere" / "figure.svg")


def test_without_a_chromium_the_cure_is_told_and_no_file_is_left(
    shown: Captioned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "no-such-browser"))
    with pytest.raises(InputError, match=r"neither was found. Cure: apt-get install chromium, or save as \.html"):
        shown.save(tmp_path / "figure.svg")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def page() -> Iterator[Any]:
    """A page of a headless Chromium, with `errors`: what it logged as an error."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.errors = []
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        yield page
        browser.close()


@pytest.mark.chromium
@pytest.mark.more
def test_an_animation_plays_and_pauses_without_an_error_in_the_console(page: Any, tmp_path: Path) -> None:
    collective(ring(4)).save(tmp_path / "ring.html")
    page.goto(f"file://{tmp_path / 'ring.html'}")
    page.wait_for_selector(".main-svg")
    round_shown = "() => document.querySelector('.slider-label').textContent"
    page.get_by_text("Play", exact=True).click()
    page.wait_for_function(f"({round_shown})().includes('1')")
    page.get_by_text("Pause", exact=True).click()
    paused = page.evaluate(round_shown)
    page.wait_for_timeout(1500)  # longer than a round takes
    assert page.evaluate(round_shown) == paused
    assert page.errors == []
