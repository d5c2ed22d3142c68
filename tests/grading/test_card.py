"""Cards: the value stays a number for nbgrader and nbval, the HTML is for people."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter

from distsim.grading.card import LOST, OPEN, PARTLY, RIGHT, Points, Total, card
from distsim.grading.result import Result

bs4 = pytest.importorskip("bs4")


def shown(result: Result, because: str = "") -> Any:
    """The card of the first of two checks, as parsed HTML."""
    total = Total("Lab 03", {result.check: result}, {result.check: result.maximum, "other": 3.0})
    return bs4.BeautifulSoup(card(result, total, because)._repr_html_(), "html.parser")


def words(page: Any) -> str:
    return " ".join(page.get_text(" ").split())


def test_the_text_of_a_result_is_its_points_as_nbgrader_reads_them() -> None:
    points = card(Result("sums", 1.5, 2.0, "3", "6"), Total("Lab 03", {}, {}))
    data, _ = DisplayFormatter().format(points)
    assert data["text/plain"] == "1.5"
    assert float(data["text/plain"]) == points == 1.5
    assert set(data) == {"text/plain", "text/html"}
    assert json.dumps(points) == "1.5"


def test_what_to_look_at_stands_open_and_how_to_do_it_is_folded() -> None:
    lost = Result("sums", 0.0, 2.0, "3", "6", hint="Count the rounds.", how="Each of `N` rounds sends one.")
    (folded,) = shown(lost).select("details")
    assert (folded.summary.text, folded.code.text, folded.has_attr("open")) == ("how", "N", False)
    assert "Each of" not in lost.text()
    assert not shown(Result("sums", 2.0, 2.0, how="Each.")).select("details")
    assert not shown(Result("sums", 0.0, 2.0, "NotImplementedError: write sums", how="Each.")).select("details")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda points: pickle.loads(pickle.dumps(points))])
def test_points_survive_copies(copied: Any) -> None:
    points = copied(Points(2.0, "lines", "html"))
    assert (points, points.lines, points._repr_html_()) == (2.0, "lines", "html")


@pytest.mark.parametrize(
    ("result", "sign", "colour"),
    [
        (Result("ring_bytes", 2.0, 2.0), "✓", RIGHT),
        (Result("ring_bytes", 1.0, 2.0, "3", "6"), "◐", PARTLY),
        (Result("ring_bytes", 0.0, 2.0, "3", "6"), "✗", LOST),
        (Result("ring_bytes", 0.0, 2.0, "no answer yet"), "○", OPEN),
        (Result("ring_bytes", 0.0, 2.0, "rank 0: NotImplementedError: write total: Sums."), "○", OPEN),
    ],
)
def test_a_sign_and_words_tell_it_beside_the_colour(result: Result, sign: str, colour: str) -> None:
    page = shown(result)
    box = page.select_one("div.distsim-card")
    assert f"6px solid {colour}" in box["style"]
    assert box["role"] == "group"
    assert box["aria-label"] == f"Check ring bytes: {result.points:g} of 2 points"
    assert page.select_one("[aria-hidden]").text == sign
    assert words(page).startswith(f"{sign} ring bytes : {result.points:g} of 2 points")
    assert words(page).endswith(f"Lab 03 so far: {result.points:g} of 5 points")


def contrast(colour: str, ground: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(code: str) -> float:
        parts = [int(code[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(colour) + 0.05, luminance(ground) + 0.05), reverse=True)
    return light / dark


@pytest.mark.parametrize("colour", [RIGHT, PARTLY, LOST, OPEN])
def test_edges_can_be_seen_on_light_and_dark_pages(colour: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert min(contrast(colour, ground) for ground in ("#ffffff", "#111111", "#131416")) >= 3.0


def test_words_take_the_colour_of_the_page() -> None:
    styles = [box["style"] for box in shown(Result("sums", 1.0, 2.0, "3", "6", "rank 1", "Add.")).select("[style]")]
    rules = [rule.strip() for style in styles for rule in style.split(";")]
    assert rules
    assert not [rule for rule in rules if rule.startswith(("color", "background"))]


def test_reasons_stand_in_the_card_and_students_text_stays_text() -> None:
    evil = "<script>alert(1)</script> $x$ & `code`"
    page = shown(Result("sums", 0.0, 2.0, evil, "6", "rank 1", "Try `dist.all_reduce`."))
    assert not page.select("script")
    values = [code.text for code in page.select("code")]
    assert values == [evil, "6", "rank 1", "dist.all_reduce"], "MathJax leaves code alone"
    for name in ("observed:", "expected:", "where:", "hint:"):
        assert name in words(page)


def test_the_reason_of_a_right_answer_is_told() -> None:
    assert "Four batches of `eight`.".replace("`", "") in words(
        shown(Result("sums", 2.0, 2.0), "Four batches of eight.")
    )
    assert "Four" not in words(shown(Result("sums", 1.0, 2.0, "3"), "Four batches of eight."))


def test_a_total_lists_what_ran_and_what_did_not() -> None:
    done = {"sums": Result("sums", 2.0, 2.0), "shares": Result("shares", 0.0, 1.0, "3")}
    total = Total("Chapter 02", done, {"sums": 2.0, "shares": 1.0, "rates": 1.5})
    page = bs4.BeautifulSoup(total._repr_html_(), "html.parser")
    assert repr(total) == "2 of 4.5 points"
    assert words(page) == (
        "Chapter 02: 2 of 4.5 points ✓ sums: 2 of 2 points ✗ shares: 0 of 1 point ○ rates: not checked yet, 1.5 points"
    )
