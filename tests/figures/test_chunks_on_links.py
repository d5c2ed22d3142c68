"""The figure of chunks on links without a browser: layout, sentence, table, files, and colours."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from distsim.chunk_movements import ChunkMovements
from distsim.cluster import Cluster
from distsim.collectives import Schedule, halving_doubling, parameter_server, ring, tree
from distsim.errors import InputError
from distsim.figures import chunks_on_links, theme
from distsim.figures.chunk_scene import HEIGHT, WIDTH, Scene
from distsim.figures.chunks_on_links import ChunksOnLinks
from tests.figures.test_every_figure import TEXT_CONTRAST, contrast
from tests.figures.test_theme import darkened
from tests.test_chunk_movements import WRONG, direct

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*schedules: Schedule) -> ChunksOnLinks:
    """A gradient of 64 MB by each of the schedules."""
    cluster = Cluster(workers=schedules[0].workers, bandwidth="10 Gbit/s", latency="50 us")
    return chunks_on_links([ChunkMovements.simulated(one, cluster, "64 MB") for one in schedules])


def boxes(scene: Scene, seconds: float) -> list[list[float]]:
    """Left, top, right and bottom of each rank's card."""
    cards = [one for one in ET.fromstring(scene.svg(seconds)).iter(f"{SVG}rect") if "card" in one.get("class", "")]
    found = [[float(one.get(name, "")) for name in ("x", "y", "width", "height")] for one in cards]
    return [[x, y, x + width, y + height] for x, y, width, height in found]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 8, 11, 16, 32])
@pytest.mark.parametrize("servers", [0, 1, 4])
def test_cards_are_in_the_picture_and_do_not_overlap(workers: int, servers: int) -> None:
    schedule = parameter_server(workers, servers) if servers else ring(workers)
    (scene,) = drawn(schedule).scenes
    found = boxes(scene, 0.0)
    assert len(found) == workers + servers
    assert all(0 <= left < right <= WIDTH and 40 <= top < bottom <= 405 for left, top, right, bottom in found)
    for one, other in itertools.combinations(found, 2):
        apart = max(one[0] - other[2], other[0] - one[2], one[1] - other[3], other[1] - one[3])
        assert apart > 0, (one, other)


@pytest.mark.parametrize("schedule", [ring(4), parameter_server(16), tree(8), direct(6), halving_doubling(16)])
def test_packets_go_from_the_chunks_of_one_card_to_those_of_another(schedule: Schedule) -> None:
    (scene,) = drawn(schedule).scenes
    cards = np.array(boxes(scene, 0.0))
    for one in scene.calls.movements:
        way = scene.way(one.source, one.target, one.chunk, len(one.sums))
        for rank, (x, y) in ((one.source, way[0]), (one.target, way[-1])):
            left, top, right, bottom = cards[rank]
            assert left < x < right and top < y < bottom  # noqa: PT018
        length = np.hypot(*np.diff(way, axis=0).T)
        assert length[1] > 0
        assert np.dot(way[2] - way[1], way[-1] - way[0]) > 0  # the track leads on


def test_bars_have_one_scale_and_the_height_of_the_bytes() -> None:
    figure = drawn(ring(4), parameter_server(4))
    around, served = figure.scenes
    assert around.height(1e6) == served.height(1e6)
    for scene in figure.scenes:
        svg = ET.fromstring(scene.svg(scene.calls.end_seconds))
        bars = next(group for group in svg.iter(f"{SVG}g") if group.get("class") == "bars")
        heights = [float(bar.get("height", "")) for bar in bars]
        assert heights == pytest.approx(
            [scene.height(value) for value in np.concatenate(scene.calls.bytes_per_link)], abs=0.01
        )
    most = around.height(float(np.max(served.calls.bytes_per_link)))
    assert most == pytest.approx(80.0)
    assert around.height(96e6) == pytest.approx(most * 96 / 256)


def test_lines_are_as_wide_as_their_rates() -> None:
    figure = drawn(ring(16), parameter_server(16))
    widths = [
        {float(one.get("stroke-width", "")) for one in ET.fromstring(scene.svg(1e-3)).iter(f"{SVG}line")
         if one.get("class") == "flow"}
        for scene in figure.scenes
    ]  # fmt: skip
    assert widths == [{5.0}, {0.8}]  # the thinnest line is drawn where a sixteenth would not be seen


def test_all_scenes_cut_the_gradient_equally_fine() -> None:
    figure = drawn(ring(6), parameter_server(6), parameter_server(6, 2), tree(6))
    assert {scene.calls.chunks for scene in figure.scenes} == {6}
    assert {scene.calls.chunks for scene in drawn(ring(37), ring(36)).scenes} == {37, 36}  # their product is too fine


def test_sentence_and_table_have_the_bytes_of_every_link() -> None:
    figure = drawn(ring(4), parameter_server(4, 2))
    assert "of its 8 links, each carries 96 MB" in figure.summary
    assert "of its 12 links, the servers' carry 128 MB, and the least busy 64 MB" in figure.summary
    assert len(figure.table) == 12
    assert figure.table[0] == {"link": "up-link of rank 0", "ring (MB)": 96.0, "parameter server (MB)": 64.0}
    assert figure.table[11] == {
        "link": "down-link of server, rank 5",
        "ring (MB)": None,
        "parameter server (MB)": 128.0,
    }
    assert len({tuple(row) for row in drawn(ring(3), ring(3)).table}) == 1
    assert len(drawn(ring(3), ring(3)).table[0]) == 3
    assert drawn(ring(1)).summary == "The ring sends nothing."


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_schedule_is_shown_as_wrong(name: str) -> None:
    figure = drawn(WRONG[name])
    (scene,) = figure.scenes
    assert "is wrong" in figure.summary
    html = figure.html()
    assert 'class="fault"' in html
    assert "Cure" in html
    assert 'class="told wrong"' in scene.svg(scene.calls.end_seconds)
    assert "done" not in scene.told(scene.calls.end_seconds)
    right = drawn(ring(4))
    assert 'class="told done"' in right.scenes[0].svg(right.scenes[0].calls.end_seconds)
    assert 'class="fault"' not in right.html()


def test_a_part_that_is_added_twice_has_a_frame_of_its_own() -> None:
    (scene,) = drawn(WRONG["sums are added up"]).scenes
    assert 'class="cell twice"' in scene.svg(scene.calls.end_seconds)
    assert 'class="cell twice"' not in scene.svg(0.0)


def test_nothing_or_too_much_is_refused() -> None:
    with pytest.raises(InputError, match="take at least one call"):
        chunks_on_links([])
    with pytest.raises(InputError, match="at most 40 ranks and 64 chunks"):
        drawn(ring(41))
    with pytest.raises(InputError, match=r"must end in \.html or \.svg"):
        drawn(ring(2)).save("chunks.png")


def test_files_need_no_other_file_and_no_host(tmp_path: Path) -> None:
    figure = drawn(ring(4), parameter_server(4))
    figure.save(tmp_path / "chunks.html")
    figure.save(tmp_path / "chunks.svg")
    still = ET.parse(tmp_path / "chunks.svg").getroot()
    assert len(list(still.iter(f"{SVG}svg"))) == 3
    assert still.get("aria-label") == figure.summary
    for name in ("chunks.html", "chunks.svg"):
        text = (tmp_path / name).read_text("utf-8").replace('"http://www.w3.org/2000/svg"', "")
        assert "http" not in text
        assert not re.search(r"\bsrc=|@import|url\((?!#)", text)
        assert len(text) < 100_000
    assert len(drawn(ring(16), parameter_server(16)).html()) < 250_000


def test_without_scripts_there_are_a_still_picture_a_sentence_and_a_table() -> None:
    figure = drawn(ring(4), parameter_server(4))
    html = re.sub(r"<script.*?</script>", "", figure.html(), flags=re.DOTALL)
    assert figure.summary in html.replace("&#x27;", "'")
    assert html.count("<svg") == 2
    assert html.count("<tr>") == 1 + len(figure.table)
    assert "<noscript>" in html
    assert 'class="controls" role="group" aria-label="Playing" hidden' in html


def test_text_in_the_json_cannot_end_the_script() -> None:
    schedule = replace(ring(2), name="</script><b>")
    html = drawn(schedule).html()
    assert "<b>" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    content = re.findall(r'<script type="application/json">(.*?)</script>', html)[0]
    assert json.loads(content)["scenes"][0]["name"] == "</script><b>"


@pytest.mark.parametrize("chunks", [1, 4, 16, 64])
def test_text_is_read_on_every_chunk_in_light_and_in_dark(chunks: int) -> None:
    for colour in theme.chunk_colours(chunks):
        assert theme.dark(colour) == darkened(colour)
        assert contrast(colour, theme.INK) >= TEXT_CONTRAST
        assert contrast(theme.dark(colour), theme.dark(theme.INK)) >= TEXT_CONTRAST


def test_two_figures_of_a_page_keep_their_colours() -> None:
    first, second = (drawn(ring(workers)).style() for workers in (4, 6))
    for style, chunks in ((first, 4), (second, 6)):
        assert set(re.findall(r"\.distsim-chunks-on-links\.of-\d+", style)) == {f".distsim-chunks-on-links.of-{chunks}"}


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_every_picture_is_whole_xml(share: float) -> None:
    for schedule in (ring(1), ring(16), parameter_server(5, 5, colocated=True), tree(7), direct(4)):
        (scene,) = drawn(schedule).scenes
        svg = ET.fromstring(scene.svg(share * scene.calls.end_seconds))
        assert svg.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
