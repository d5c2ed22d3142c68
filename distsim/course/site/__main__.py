"""`python -m distsim.course.site OUT/`: builds the site and prints the page to open."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from distsim.course.folder import course_folder
from distsim.course.site.build import build
from distsim.errors import DistsimError


@click.command()
@click.argument("out", metavar="OUT/", type=click.Path(path_type=Path))
def main(out: Path) -> None:
    """Build the course as a site to read, into the folder OUT.

    Chapters, labs, explorers, glossary and claims become static pages with figures that move. They open from the disk
    as well as from any server, without a network. OUT is new, empty, or an earlier site, which is replaced.
    """
    try:
        number = build(course_folder().parent, out)
    except DistsimError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    click.echo(f"{number} pages: open {out / 'index.html'}")


if __name__ == "__main__":
    main(prog_name="python -m distsim.course.site")
