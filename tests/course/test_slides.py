"""The figures of chapters as pictures for slides."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from distsim.course import slides as command
from distsim.course.folder import number_of
from distsim.course.slides import main, slides
from distsim.errors import InputError
from distsim.figures import export
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.theme import FONT_SIZE

CHAPTERS = sorted((Path(__file__).parents[2] / "course").glob("[0-9][0-9]*_*.ipynb"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_saved_figure_is_a_slide_with_its_sentence(chapter: Path) -> None:
    found = slides(chapter)
    assert len(found) == chapter.read_text("utf-8").count(f'"{PLOTLY_MIME}"') >= 3
    assert [slide.name for slide in found] == [f"{chapter.stem}-{number + 1}" for number in range(len(found))]
    assert all(len(slide.sentence) > 20 for slide in found)
    assert all(slide.figure.layout.height is None for slide in found)


def test_a_chapter_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path / "slides"), "99"])
    assert done.exit_code == 2
    assert "chapter = '99': has no notebook" in done.output
    (tmp_path / "file").touch()
    assert CliRunner().invoke(main, [str(tmp_path / "file" / "slides")]).exit_code == 2


@pytest.mark.chromium
@pytest.mark.more
def test_slides_are_wide_pictures_with_large_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "slides", lambda chapter: slides(chapter)[:2])
    done = CliRunner().invoke(main, [str(tmp_path), number_of(CHAPTERS[0])])
    assert done.exit_code == 0, done.output
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == [f"{CHAPTERS[0].stem}-{number}.svg" for number in (1, 2)]
    assert [line.split(": ")[0] for line in done.output.splitlines()] == [str(path) for path in written]
    for path in written:
        drawing = ElementTree.parse(path).getroot()
        assert (drawing.get("width"), drawing.get("height")) == ("1600", "900")
        wide = float((drawing.get("viewBox") or "").split()[2])
        letters = [
            float(size) * 1600 / wide
            for text in drawing.iter(f"{SVG}text")
            for size in re.findall(r"font-size: ([\d.]+)px", text.get("style") or "")
        ]
        assert letters
        assert min(letters) >= 2 * (FONT_SIZE - 2)  # a fortieth of the height
    assert "http" not in re.sub(r'xmlns[:\w]*="[^"]+"', "", written[0].read_text("utf-8"))


def test_slides_of_pixels_are_named_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "pictures", lambda figures, path, *_: [path.suffix.encode()] * len(figures))
    assert CliRunner().invoke(main, [str(tmp_path), "--png", number_of(CHAPTERS[0])]).exit_code == 0
    assert {(path.suffix, path.read_bytes()) for path in tmp_path.iterdir()} == {(".png", b".png")}


def test_without_a_chromium_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = pytest.importorskip("kaleido.errors")

    def missing(*_: object, **__: object) -> None:
        raise errors.ChromeNotFoundError("none")

    monkeypatch.setattr("kaleido.Kaleido", missing)
    with pytest.raises(InputError, match="neither was found"):
        export.pictures([slides(CHAPTERS[0])[0].figure], tmp_path / "slide.svg", (800, 450), 2)
