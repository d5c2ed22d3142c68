"""The site to read: built by its command, whole, without a dead link, and in need of nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course.site import build
from distsim.errors import InputError
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.catalogue import FIGURES
from distsim.figures.theme import config
from tests.course.site_faults import dead_links, foreign, pages, parsed, without_head

pytestmark = [
    pytest.mark.timeout(200),
    pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API modifications"),  # of MyST, for its next version
]

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "course").glob("[0-9][0-9]_*.ipynb"))
LABS = sorted((ROOT / "labs").glob("[0-9][0-9]_*/lab.ipynb"))
EXPLORERS = sorted((ROOT / "course" / "explorers").glob("*.ipynb"))
BESIDE = ("labs/README.md", "README.md", "distsim/examples/KEYS.md")
DOCUMENTS = [*sorted((ROOT / "course").glob("*.md")), *(ROOT / name for name in BESIDE)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built once for all tests of this file; built twice, as `make site` is."""
    pytest.importorskip("myst_nb")
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "distsim.course.site", str(out)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    number = len(CHAPTERS) + len(LABS) + len(EXPLORERS) + len(DOCUMENTS)
    assert done.stdout == f"{number} pages: open {out / 'index.html'}\n"
    return out


def in_site(site: Path, path: Path) -> Path:
    return site / path.relative_to(ROOT).with_suffix(".html")


def figures_of(path: Path) -> Iterator[dict[str, Any]]:
    """The figures that a notebook holds."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", ()):
            if PLOTLY_MIME in output.get("data", {}):
                yield output.data[PLOTLY_MIME] | {"config": config()}


@pytest.mark.more
def test_the_site_is_whole(site: Path) -> None:
    """One test for all pages: what is built once is looked at once."""
    assert [path for path in (*CHAPTERS, *LABS, *EXPLORERS, *DOCUMENTS) if not in_site(site, path).exists()] == []
    assert list(dead_links(site)) == []
    assert list(foreign(site)) == []
    assert list(without_head(site)) == []
    _check_figures(site)
    _check_menu(site)
    _check_equations(site)


def _check_figures(site: Path) -> None:
    for path in (*CHAPTERS, *EXPLORERS):
        saved = list(figures_of(path))
        shown = parsed(in_site(site, path)).select(".distsim-figure")
        assert [json.loads(one.script.get_text()) for one in shown] == saved, path.name
        assert saved or path.stem == "index"
        assert all(len(one["aria-label"]) > 20 and one["role"] == "figure" for one in shown)
        assert len(parsed(in_site(site, path)).select("script[src*='plotly.min.js']")) == (1 if saved else 0)
    assert len(list(site.rglob("plotly*.js"))) == 1
    page = parsed(in_site(site, ROOT / "course" / "FIGURES.md"))
    assert len(page.select("table tr")) == 1 + len(FIGURES)


def _check_menu(site: Path) -> None:
    """On every page, in the order of file names; labs and explorers are below their own pages."""
    for path in pages(site):
        if path != site / "index.html":
            menu = [str(link["href"]) for link in parsed(path).select(".sidebar-tree a")]
            there = [path if link == "#" else (path.parent / link).resolve() for link in menu]
            for found in (CHAPTERS, LABS, EXPLORERS, DOCUMENTS):
                wanted = [in_site(site, one) for one in found if one != ROOT / "course" / "README.md"]
                assert sorted(one for one in there if one in wanted) == sorted(wanted)
            assert there[: len(CHAPTERS)] == [in_site(site, one) for one in CHAPTERS]


def _check_equations(site: Path) -> None:
    for path in (*CHAPTERS, *LABS):
        markdown = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
        prose = re.sub(r"```.*?```|`[^`]*`|\\\$", "", "\n\n".join(markdown), flags=re.DOTALL)
        written = len(re.findall(r"\$\$[^$]+\$\$|\$[^$]+\$", prose))
        shown = parsed(in_site(site, path))
        assert len(shown.find_all("math")) == written, path
        strings = shown.find("article").find_all(string=True)
        text = "".join(one for one in strings if one.find_parent(["pre", "code", "script"]) is None)
        assert not re.search(r"\$\$|\\frac|\]\(", text), path


def small(folder: Path, syllabus: str) -> Path:
    """A course of one page and a glossary of one word."""
    (folder / "course").mkdir()
    (folder / "course" / "README.md").write_text(f"# A course\n\n{syllabus}\n")
    (folder / "course" / "GLOSSARY.md").write_text("# Glossary\n\n## worker\n\nA process that computes gradients.\n")
    return folder


@pytest.mark.parametrize(
    ("syllabus", "fault"),
    [
        ("[a word](GLOSSARY.md#nowhere)", "nowhere"),
        ("[a page](NOWHERE.md)", "NOWHERE.md"),
        ("![a picture](nowhere.svg)", "nowhere.svg"),
        (r"$\nowhere{1}$", "an equation cannot be read"),
    ],
)
def test_a_page_with_a_fault_builds_no_site(tmp_path: Path, syllabus: str, fault: str) -> None:
    pytest.importorskip("myst_nb")
    with pytest.raises(InputError, match=re.escape(fault)):
        build(small(tmp_path, syllabus), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_earlier_site_is_replaced_and_what_is_none_is_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("myst_nb")
    root, out = small(tmp_path, "[a word](GLOSSARY.md#worker) of $N$"), tmp_path / "out"
    assert build(root, out) == 2
    (out / "old.html").touch()
    assert build(root, out) == 2
    assert not (out / "old.html").exists()
    assert [*dead_links(out), *foreign(out), *without_head(out)] == []
    assert "<math><mi>N</mi></math>" in (out / "course" / "README.html").read_text("utf-8")
    with pytest.raises(InputError, match="holds something that is no site"):
        build(root, root)
    with pytest.raises(InputError, match="is no folder"):
        build(root, root / "course" / "README.md")


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ('<a href="nowhere.html">', dead_links),
        ('<a href="#nowhere">', dead_links),
        ('<a href="../page.html">', dead_links),
        ('<script src="https://example.org/x.js"></script>', foreign),
        ('<link rel="stylesheet" href="//example.org/x.css">', foreign),
        ('<img src="nowhere.png">', foreign),
        ("<style>@font-face { src: url(https://example.org/x.woff) }</style>", foreign),
        ("<h1>Another</h1>", without_head),
    ],
)
def test_faults_of_a_site_are_seen(tmp_path: Path, change: str, check: Any) -> None:
    """The checks have power."""
    head = "<!doctype html><title>A page</title><h1 id='one'>A page</h1><a href='#one'>up</a>"
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "page.html").write_text(head)
    path = site / "page.html"
    path.write_text(head)
    assert [*dead_links(site), *foreign(site), *without_head(site)] == []
    parsed.cache_clear()
    path.write_text(head + change)
    assert list(check(site))


@pytest.mark.chromium
@pytest.mark.more
def test_a_chapter_is_drawn_without_a_network(site: Path, page: Any, problems: list[str]) -> None:
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    chapter = CHAPTERS[2]
    page.goto(in_site(site, chapter).as_uri())
    saved = list(figures_of(chapter))
    page.wait_for_function(
        "number => document.querySelectorAll('.distsim-plot:has(.main-svg)').length == number", arg=len(saved)
    )
    for drawn in page.locator(".distsim-plot").all():
        box = drawn.bounding_box()
        assert box["width"] > 600
        assert box["height"] > 200
    assert page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then(found => found.length)") == 1
    assert page.locator("div.math math").first.bounding_box()["height"] > 30  # a fraction, drawn as one

    page.set_viewport_size(
        {"width": 390, "height": 844}
    )  # a phone: figures and tables move sideways, the page does not
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page.set_viewport_size({"width": 1400, "height": 1000})
    page.locator(".sidebar-search").fill("straggler")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Glossary").first.click()
    page.locator("h1", has_text="Glossary").wait_for()
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert not problems, problems
