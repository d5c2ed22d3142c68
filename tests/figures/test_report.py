"""The HTML report: whole, self-contained, readable without eyes."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from distsim.comparison import compare
from distsim.figures.captioned import shown, table_html
from distsim.figures.report import html
from distsim.trace import Trace

MakeTrace = Callable[..., Trace]


class Outline(HTMLParser):
    """Headings, images, tables, addresses, and whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(make_trace: MakeTrace) -> str:
    """A report of two scenarios."""
    runs = [(make_trace(backups=backups), make_trace(backups=backups, producer="measured")) for backups in (0, 1)]
    notes = ["links calibrated: 7.1 Gbit/s", "<script>alert(1)</script>"]
    return html([(compare(*pair), *pair, notes) for pair in runs])


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    """The report, parsed."""
    found = Outline()
    found.feed(page)
    return found


def test_tags_are_closed_and_headings_skip_no_level(outline: Outline) -> None:
    assert outline.open == []
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(outline.headings, outline.headings[1:], strict=False))


def test_nothing_is_loaded_and_plotly_stands_in_it_once(page: str, outline: Outline) -> None:
    for tag, attributes in outline.attributes:
        assert "src" not in attributes
        assert not (tag == "link" and "http" in (attributes.get("href") or ""))
    assert 4_000_000 < len(page) < 6_000_000


def test_every_drawing_has_a_sentence_and_every_table_its_heads(page: str, outline: Outline) -> None:
    drawings = [attributes for _, attributes in outline.attributes if attributes.get("role") == "figure"]
    assert len(drawings) == page.count('class="plotly-graph-div"') == 6
    assert all(len(attributes["aria-label"] or "") > 20 for attributes in drawings)
    assert ("html", {"lang": "en"}) in outline.attributes
    tables = page.count("<table")
    assert tables == page.count("<thead>")
    assert page.count('scope="row"') > tables


def test_names_and_notes_are_text_not_markup(page: str) -> None:
    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_an_empty_report_is_a_page_too() -> None:
    assert "</html>" in html([])


def test_tables_show_numbers_to_four_digits_and_what_is_missing_as_a_dash() -> None:
    assert [shown(value) for value in (0.12345, 1.5, 99.999, -12.345, 123456.0, 7e-5, None, 12, "x")] == [
        "0.1235", "1.5", "100", "-12.35", "123,456", "7e-05", "–", "12", "x",
    ]  # fmt: skip
    assert table_html([]) == ""
    assert "<caption>all &amp; more</caption>" in table_html([{"a": 1}], caption="all & more")
