"""The figures of the chapters for slides: 1600 x 900 pixels each, with letters that the last row can read.

`python -m distsim.course.slides OUT/` writes all figures of the chapters' notebooks, as NN_name-1.svg and so on.
A figure is drawn at half the width and height and then enlarged, so letters, lines and marks grow alike.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import plotly.graph_objects as go

from distsim.course.folder import course_folder
from distsim.course.notebooks import chapters
from distsim.errors import DistsimError, InputError
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.export import pictures
from distsim.files import replaced
from distsim.grading.metadata import read

SIZE, SCALE = (800, 450), 2.0


@dataclass(frozen=True)
class Slide:
    """A figure that a chapter shows. name: of its file, without a suffix; sentence: its caption."""

    name: str
    figure: go.Figure
    sentence: str


def slides(chapter: Path) -> list[Slide]:
    """The figures of a chapter's notebook, in order. Each fills a slide, whatever its height in the notebook."""
    bundles = [output["data"] for cell in read(chapter).cells for output in cell.get("outputs", ()) if _drawn(output)]
    found = []
    for number, bundle in enumerate(bundles, start=1):
        figure = go.Figure(bundle[PLOTLY_MIME])
        figure.layout.height = None
        found.append(Slide(f"{chapter.stem}-{number}", figure, "".join(bundle.get("text/plain", ""))))
    return found


def _drawn(output: dict[str, object]) -> bool:
    data = output.get("data")
    return isinstance(data, dict) and PLOTLY_MIME in data


def write(found: Sequence[Slide], out: Path, suffix: str = ".svg") -> Iterator[tuple[Path, Slide]]:
    """Writes each figure into the folder `out`; yields its file and the slide.

    Raises InputError where `out` cannot be written to, or Chromium is missing.
    """
    drawn = pictures([slide.figure for slide in found], out / f"slide{suffix}", SIZE, SCALE)
    for slide, picture in zip(found, drawn, strict=True):
        path = out / f"{slide.name}{suffix}"
        with replaced(path) as stream:
            stream.write(picture)
        yield path, slide


@click.command()
@click.argument("out", metavar="OUT/", type=click.Path(path_type=Path, file_okay=False))
@click.argument("numbers", metavar="[CHAPTER]...", nargs=-1)
@click.option("--png", is_flag=True, help="Pictures of pixels, for what cannot show SVG.")
def main(out: Path, numbers: tuple[str, ...], png: bool) -> None:
    """Write the figures of the chapters into the folder OUT, for slides: SVG, 1600 x 900.

    CHAPTERs are numbers such as 03; without any, all chapters are taken. Each file is told with the sentence that says
    what it shows. Figures are those saved in the notebooks: nothing is run.
    """
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.of("OUT/", str(out), f"cannot be made ({error.strerror})", "name another") from None
        for chapter in chapters(course_folder(), numbers):
            for path, slide in write(slides(chapter), out, ".png" if png else ".svg"):
                click.echo(f"{path}: {slide.sentence}")
    except DistsimError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(prog_name="python -m distsim.course.slides")
