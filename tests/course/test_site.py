"""The site to read: built by its command, whole, without a dead link, and in need of nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course.site import build
from distsim.course.site.films import FILMS
from distsim.course.site.moving import MOVING, Moving, explored
from distsim.course.site.packing import unpacked
from distsim.errors import InputError
from distsim.explorers import catalogue as explorers
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.catalogue import FIGURES
from distsim.figures.theme import config
from tests.course.site_faults import dead_links, foreign, pages, parsed, without_head
from tests.page_faults import IS_DARK, inaccessible, recorded, sending

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API modifications"),  # of MyST, for its next version
]

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "course").glob("[0-9][0-9]*_*.ipynb"))
LABS = sorted((ROOT / "labs").glob("[0-9][0-9]_*/lab.ipynb"))
EXPLORERS = sorted((ROOT / "course" / "explorers").glob("*.ipynb"))
BESIDE = ("labs/README.md", "README.md", "distsim/examples/KEYS.md")
MOST_TABS, PHONE = 100, 420  # the phone's width in pixels
MOST_BYTES = 1_500_000  # of an explorer's page, without plotly.js, which all pages share
PLACE = """() => {
    const places = {"left menu": ".sidebar-drawer", text: "article", "right menu": ".toc-drawer"};
    return Object.keys(places).find(name => document.activeElement.closest(places[name])) ?? "other";
}"""
IS_ON_SCREEN = """() => {
    const {left, right, top, bottom} = document.activeElement.getBoundingClientRect();
    return left >= 0 && left < innerWidth && right > 0 && top < innerHeight && bottom > 0;
}"""
DOCUMENTS = [*sorted((ROOT / "course").glob("*.md")), *(ROOT / name for name in BESIDE)]


def in_site(site: Path, path: Path) -> Path:
    return site / path.relative_to(ROOT).with_suffix(".html")


def figures_of(path: Path) -> Iterator[dict[str, Any]]:
    """The figures that a notebook holds."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", ()):
            if PLOTLY_MIME in output.get("data", {}):
                yield output.data[PLOTLY_MIME] | {"config": config()}


@pytest.mark.parametrize("package", ["sphinx", "furo", "math_core"])
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str
) -> None:
    monkeypatch.setattr("distsim.extras.find_spec", lambda name: None if name == package else object())
    with pytest.raises(InputError) as told:
        build(ROOT, tmp_path / "site")
    assert str(told.value) == (
        f'the site needs {package}, which is not installed. Cure: pip install "distsim-course[site]"'
    )


@pytest.mark.more
def test_the_site_is_whole(site: Path) -> None:
    """One test for all pages: what is built once is looked at once."""
    number = len(CHAPTERS) + len(LABS) + len(EXPLORERS) + len(DOCUMENTS)
    _, printed, _ = json.loads((site.parent / "site.json").read_text("utf-8"))
    assert printed == f"{number} pages: open {site / 'index.html'}\n"
    assert [path for path in (*CHAPTERS, *LABS, *EXPLORERS, *DOCUMENTS) if not in_site(site, path).exists()] == []
    assert list(dead_links(site)) == []
    assert list(foreign(site)) == []
    assert list(without_head(site)) == []
    _check_figures(site)
    _check_explorers(site)
    _check_menu(site)
    _check_equations(site)


def _check_figures(site: Path) -> None:
    for path in CHAPTERS:
        saved = list(figures_of(path))
        shown = parsed(in_site(site, path)).select(f".distsim-figure:not(.{MOVING} *)")
        assert [json.loads(one.script.get_text()) for one in shown] == saved, path.name
        assert saved
        assert all(len(one["aria-label"]) > 20 and one["role"] == "figure" for one in shown)
        assert len(parsed(in_site(site, path)).select("script[src*='plotly.min.js']")) == 1
    assert len(list(site.rglob("plotly*.js"))) == 1
    page = parsed(in_site(site, ROOT / "course" / "FIGURES.md"))
    assert len(page.select("table.docutils tr")) == 1 + len(FIGURES)
    for name in ("README.md", "course/FIGURES.md"):
        moving = parsed(in_site(site, ROOT / name)).select(".distsim-animation")
        assert [one.select_one(".distsim-summary").get_text() for one in moving] == [
            make().summary for make in FILMS.values()
        ]
        assert [len(one.select(".scenes > svg")) for one in moving] == [2, 4]


def _check_explorers(site: Path) -> None:
    """Each is whole and small, and a setting in its middle is that which is computed now."""
    for entry in explorers.EXPLORERS.values():
        path = in_site(site, ROOT / "course" / "explorers" / f"{entry.name}.ipynb")
        assert path.stat().st_size < MOST_BYTES
        (held,) = parsed(path).select(f".{MOVING} > script")
        found, every = unpacked(held.get_text()), Moving.of(entry).settings()
        assert len(found) == len(every)
        middle = len(every) // 2
        assert found[middle] == explored(entry, every[middle])
        assert len(parsed(path).select("script[src*='plotly.min.js']")) == 1

    for path in CHAPTERS:
        cells = (cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
        shown = re.findall(r"from distsim\.explorers\.(\w+) import explorer", "\n".join(cells))
        titles = [str(element["aria-label"]) for element in parsed(in_site(site, path)).select(f".{MOVING}")]
        assert titles == [explorers.EXPLORERS[name].title for name in shown], path


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
def test_first_page_and_a_chapter_are_for_all_in_light_and_dark(site: Path, page: Any) -> None:
    for path in (ROOT / "course" / "README.md", CHAPTERS[2]):
        _check_access(page, in_site(site, path))


@pytest.mark.chromium
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_every_page_is_for_all_in_light_and_dark(site: Path, page: Any) -> None:
    for path in pages(site):
        if path != site / "index.html":  # leads on at once
            _check_access(page, path)


def _check_access(page: Any, path: Path) -> None:
    """No serious finding of axe-core, figures as dark as the page, no figure that can be sent, no other host asked."""
    asked = recorded(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(path.as_uri())
        number = page.locator(".distsim-figure").count()
        page.wait_for_function(
            "number => document.querySelectorAll('.main-svg:first-child').length >= number", arg=number
        )
        assert not number or page.evaluate(IS_DARK) == (scheme == "dark"), path.name
        assert [*inaccessible(page), *sending(page), *asked] == [], path.name


@pytest.mark.chromium
@pytest.mark.more
def test_a_chapter_is_drawn_without_a_network(site: Path, page: Any, problems: list[str]) -> None:
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    chapter = CHAPTERS[2]
    page.goto(in_site(site, chapter).as_uri())
    figures = len(list(figures_of(chapter))) + page.locator(f".{MOVING}").count()
    page.wait_for_function(
        "number => document.querySelectorAll('.distsim-plot:has(.main-svg)').length == number", arg=figures
    )
    for drawn in page.locator(".distsim-plot").all():
        box = drawn.bounding_box()
        assert box["width"] > 600
        assert box["height"] > 200
    assert page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then(found => found.length)") == 1
    assert page.locator("div.math math").first.bounding_box()["height"] > 30  # a fraction, drawn as one

    page.set_viewport_size({"width": 1400, "height": 1000})
    page.locator(".sidebar-search").fill("straggler")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Glossary").first.click()
    page.locator("h1", has_text="Glossary").wait_for()
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert not problems, problems


@pytest.mark.chromium
@pytest.mark.more
def test_on_a_phone_the_keyboard_is_always_at_something_on_the_screen(site: Path, page: Any) -> None:
    """Also in the two menus, which are beside the screen until the keyboard comes to them."""
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(in_site(site, ROOT / "course" / "README.md").as_uri())
    reached: set[str] = set()
    for _ in range(2 * MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        reached.add(page.evaluate(PLACE))
        page.wait_for_function(IS_ON_SCREEN)
        assert page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 3
    else:
        raise AssertionError(f"{2 * MOST_TABS} presses of Tab do not lead through the page")
    assert reached == {"other", "left menu", "text", "right menu"}


@pytest.mark.chromium
@pytest.mark.more
def test_no_page_moves_sideways(site: Path, page: Any, whole: Callable[[int, int], int]) -> None:
    """On a phone, and where the menu, the text and the list of headings just fit. A wide box says that it scrolls."""
    for path in sorted(pages(site))[:: whole(3, 1)]:
        if path != site / "index.html":  # it leads to the syllabus at once
            page.set_viewport_size({"width": PHONE, "height": 900})
            page.goto(path.as_uri())
            for width in (PHONE, 1320, 1400):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path.name, width)
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(in_site(site, ROOT / "course" / "FIGURES.md").as_uri())
    hint = page.locator(".table-wrapper.distsim-scrolls").first
    assert "scrolls sideways" in hint.evaluate("box => getComputedStyle(box, '::before').content")
    hint.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")


@pytest.mark.chromium
@pytest.mark.more
def test_an_explorer_moves_by_the_keyboard_without_a_network(site: Path, page: Any, problems: list[str]) -> None:
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(in_site(site, ROOT / "course" / "explorers" / "race.ipynb").as_uri())
    page.locator(".distsim-plot .main-svg").first.wait_for()
    sentence, figure, numbers = (
        page.locator(f".{MOVING} .distsim-{part}") for part in ("summary", "figure", "numbers")
    )

    def shown() -> tuple[str, bytes, str]:
        return sentence.inner_text(), figure.screenshot(), numbers.inner_text()

    first, before = page.get_by_label("gradients an update waits for"), shown()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if first.evaluate("control => control === document.activeElement"):
            break
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.distsim-numbers').textContent.includes('first 5 of 8')")
    assert first.get_attribute("aria-valuetext") == "5"
    after = shown()
    assert all(one != other for one, other in zip(before, after, strict=True))

    page.keyboard.press("End")  # an update cannot wait for 12 of 8 workers
    page.locator(".distsim-refused").wait_for()
    assert "must be at most the 8 workers" in sentence.inner_text()
    assert numbers.inner_text() == after[2]

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "move-rate"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # back to the first values
    page.locator(f".{MOVING}:not(.distsim-refused)").wait_for()
    page.wait_for_function("text => document.querySelector('.distsim-summary').textContent === text", arg=before[0])
    assert numbers.inner_text() == before[2]
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert not problems, problems

    first.focus()
    page.keyboard.press("End")
    page.locator(".distsim-refused").wait_for()
    for scheme in ("light", "dark"):  # the old figure and table are dimmed, and can be read
        page.emulate_media(color_scheme=scheme)
        assert inaccessible(page) == []  # axe-core itself asks for style sheets, which a page on a disk may not
