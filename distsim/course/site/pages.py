"""The pages of the site and their order in the menu. Patterns find the pages, without a list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYLLABUS = "course/README"
LABS = "labs/README"
PACKAGE = "README"
FOLDER = "course/explorers"
EXPLORERS = f"{FOLDER}/index"
CHAPTERS = "course/[0-9][0-9]*_*.ipynb"
LAB = "labs/[0-9][0-9]_*/lab.ipynb"
KEYS = "distsim/examples/KEYS"
EXPLORER = f"{FOLDER}/*.ipynb"
PATTERNS = ("README.md", "course/*.md", CHAPTERS, EXPLORER, "labs/README.md", LAB, f"{KEYS}.md")


def menu(root: Path, page: str) -> str:
    """The part of the menu below a page, as Markdown that Sphinx reads. Most pages have none."""
    if page == SYLLABUS:
        pages = _found(root, "course/*.md", but=SYLLABUS)
        others = (*_named(root, LABS), *_named(root, EXPLORERS), *pages, *_named(root, KEYS), *_named(root, PACKAGE))
        return _tree("Chapters", _found(root, CHAPTERS)) + _tree("Beside the chapters", others)
    if page == LABS:
        return _tree("", _found(root, LAB))
    return _tree("", _found(root, EXPLORER, but=EXPLORERS)) if page == EXPLORERS else ""


def words(page: str) -> str:
    """The page's name in the menu; "" for the page's own heading.

    >>> words("course/03_stragglers"), words("labs/03_ring/lab"), words("labs/README"), words("course/GLOSSARY")
    ('03 stragglers', '03 ring', 'Labs', '')
    """
    if page == PACKAGE:
        return "The package"
    folder, name = page.split("/")[-2:]
    if name in ("README", "index"):
        return folder.capitalize()
    return "" if name.isupper() else (folder if name == "lab" else name).replace("_", " ")


def _found(root: Path, pattern: str, but: str = "") -> Iterator[str]:
    for path in sorted(root.glob(pattern)):
        page = path.relative_to(root).with_suffix("").as_posix()
        if page != but:
            yield page


def _named(root: Path, page: str) -> Iterator[str]:
    if any(root.glob(f"{page}.*")):
        yield page


def _tree(caption: str, pages: Iterator[str] | tuple[str, ...]) -> str:
    entries = "\n".join(f"{title} </{page}>" if (title := words(page)) else f"/{page}" for page in pages)
    option = f":caption: {caption}\n" if caption else ""
    return f"\n\n```{{toctree}}\n:hidden:\n{option}\n{entries}\n```\n" if entries else ""
