"""The explorers of the site: each setting is that of the live explorer, and what is packed is what is unpacked."""

from __future__ import annotations

import base64
import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.course.site.moving import Moving, explored
from distsim.course.site.packing import packed, plain, unpacked
from distsim.explorers.catalogue import EXPLORERS, Entry, Move
from distsim.explorers.controls import Pick, Slider
from distsim.explorers.explorer import Explorer
from distsim.explorers.style_sheet import scrolling
from distsim.figures.captioned import PLOTLY_MIME

SAMPLED = 3
MOST_SETTINGS = 200
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=60),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from("abc"), part, max_size=3),
)


@pytest.fixture(scope="module", params=EXPLORERS)
def live(request: pytest.FixtureRequest) -> tuple[Moving, Explorer[Any]]:
    return Moving.of(EXPLORERS[request.param]), EXPLORERS[request.param].open()


def corners(moving: Moving) -> list[dict[str, Any]]:
    """The first and the last setting, and some between, drawn by a seed."""
    every = moving.settings()
    return [every[0], every[-1], *random.Random(7).sample(every, SAMPLED)]


def test_its_controls_reach_from_end_to_end(live: tuple[Moving, Explorer[Any]]) -> None:
    moving, view = live
    for mover in moving.movers:
        widget = view.controls[mover.control.field]
        if isinstance(mover.control, Slider):
            assert (mover.stops[0], mover.stops[-1]) == (widget.min, widget.max)
        else:
            assert list(mover.stops) == [value for _, value in widget._options_full]
        assert mover.stops[mover.start] == widget.value
        assert isinstance(mover.control, Pick) or list(mover.stops) == sorted(set(mover.stops))
    assert len(moving.movers) >= 2
    assert 10 < len(moving.settings()) <= MOST_SETTINGS
    frames = [] if moving.frames is None else [moving.frames]
    assert len(moving.others) + len(moving.movers) + len(frames) == len(view.controls)
    assert bool(frames) == bool(moving.entry.explore({}).figure.frames)
    for mover in frames:
        assert [mover.stops[0], mover.start] == [0, 0]


def test_a_setting_is_that_of_the_live_explorer(live: tuple[Moving, Explorer[Any]]) -> None:
    moving, view = live
    for values in corners(moving):
        for field, value in values.items():
            view.controls[field].value = value
        found = explored(moving.entry, values)
        if "refused" in found:
            assert found["refused"] in view.message.value.replace("&#x27;", "'")
            continue
        assert not view.message.value
        assert view.shown is not None
        assert found["sentence"] == view.shown.summary
        assert scrolling(found["table"], "results") == view.caption.value
        exact = view.shown.bundle()[PLOTLY_MIME]
        if moving.frames is not None:  # by a slider of the page
            del exact["layout"]["sliders"]
        same(found["figure"], exact)


def same(short: Any, exact: Any) -> None:
    """The numbers of the figure differ by less than a screen shows, and nothing else differs."""
    if isinstance(exact, dict) and "bdata" in exact:
        data = np.frombuffer(base64.b64decode(exact["bdata"]), dtype=exact["dtype"])
        shape = [int(size) for size in str(exact.get("shape", data.size)).split(",")]
        exact = data.reshape(shape).tolist()
    if isinstance(exact, dict):
        assert short.keys() == exact.keys()
        for key in exact:
            same(short[key], exact[key])
    elif isinstance(exact, list):
        assert len(short) == len(exact)
        for one, other in zip(short, exact, strict=True):
            same(one, other)
    elif isinstance(exact, float) and np.isfinite(exact):
        assert abs(short - exact) <= 0.0005 * abs(exact)
    else:
        assert short == (None if isinstance(exact, float) else exact)


def test_a_value_is_shown_as_the_live_explorer_shows_it(live: tuple[Moving, Explorer[Any]]) -> None:
    """A unit is whole: 1 Gbit/s."""
    moving, view = live
    for mover in moving.movers:
        widget, texts = view.controls[mover.control.field], [mover.text(stop) for stop in mover.stops]
        if not isinstance(mover.control, Slider):
            assert texts == list(widget._options_labels)
        else:
            units = [widget.unit_of_one if stop == 1 else widget.unit for stop in mover.stops]
            assert texts == [f"{stop:g} {unit}".strip() for stop, unit in zip(mover.stops, units, strict=True)]
    assert Moving.of(EXPLORERS["overlap"]).movers[1].text(1.0) == "1 Gbit/s"


def test_a_figure_that_is_refused_gives_the_reason() -> None:
    assert "must be at most the 8 workers" in explored(EXPLORERS["race"], {"first": 12})["refused"]


def test_a_page_holds_every_setting_and_names_its_controls() -> None:
    moving = Moving.of(EXPLORERS["failures"])
    found = [{"figure": {}, "sentence": f"Setting {place}.", "table": ""} for place in range(len(moving.settings()))]
    first = moving.settings().index({"interval_minutes": 60.0, "mean_time_between_days": 10.0})
    page = moving.html(found)
    assert f'role="status">Setting {first}.<' in page
    assert 'aria-valuetext="60 min"' in page
    assert 'aria-valuetext="10 days"' in page
    assert "workers; a restart takes; seed of the first run" in page
    assert "runs the scenario for real" not in page
    (text,) = re.findall(r'octet-stream">([^<]+)<', page)
    assert unpacked(text) == found


@pytest.mark.parametrize("move", [Move("seed", (0, 21)), Move("seed", (0, 1)), Move("cancel")])
def test_stops_that_the_live_control_lacks_are_refused(move: Move) -> None:
    entry = EXPLORERS["backup_workers"]
    with pytest.raises(ValueError, match=move.field):
        Moving.of(Entry(entry.name, entry.title, entry.question, (move,)))


@settings(max_examples=50, deadline=None)
@given(st.lists(JSON, max_size=4))
def test_what_is_packed_is_unpacked(values: list[Any]) -> None:
    assert unpacked(packed(values)) == values


def test_shared_parts_are_stored_once() -> None:
    drawn = random.Random(1)
    noise = [drawn.random() for _ in range(1000)]
    alone = len(packed([{"x": noise}]))
    assert len(packed([{"x": noise, "y": place} for place in range(20)])) < 1.2 * alone


def test_numbers_keep_four_digits() -> None:
    assert plain([0.0123456, -1234.56, 3.0, float("inf"), 7, True, "0.123456"]) == [
        0.01235, -1235, 3, None, 7, True, "0.123456",
    ]  # fmt: skip
