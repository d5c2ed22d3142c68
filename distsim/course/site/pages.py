"""Which pages the site has, and in which order its menu names them. All are found, none is listed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYLLABUS = "course/README"
LABS = "labs/README"
PACKAGE = "README"
EXPLORERS = "course/explorers/index"
CHAPTERS = "course/[0-9][0-9]_*.ipynb"
LAB = "labs/[0-9][0-9]_*/lab.ipynb"
EXPLORER = "course/explorers/*.ipynb"
PATTERNS = ("README.md", "course/*.md", CHAPTERS, EXPLORER, "labs/README.md", LAB)


def menu(root: Path, page: str) -> str:
    """What stands below a page in the menu, as Markdown that Sphinx reads; nothing for most of them."""
    if page == SYLLABUS:
        pages = _found(root, "course/*.md", but=SYLLABUS)
        others = (*_named(root, LABS), *_named(root, EXPLORERS), *pages, *_named(root, PACKAGE))
        return _tree("Chapters", _found(root, CHAPTERS)) + _tree("Beside the chapters", others)
    if page == LABS:
        return _tree("", _found(root, LAB))
    return _tree("", _found(root, EXPLORER, but=EXPLORERS)) if page == EXPLORERS else ""


def words(page: str) -> str:
    """A page's name as the menu has it.

    >>> words("course/03_stragglers"), words("labs/03_ring/lab"), words("course/GLOSSARY"), words("labs/README")
    ('03 stragglers', '03 ring', 'Glossary', 'Labs')
    """
    if page == PACKAGE:
        return "The package"
    folder, name = page.split("/")[-2:]
    if name in ("README", "index"):
        return folder.capitalize()
    text = (folder if name == "lab" else name).replace("_", " ")
    return text.capitalize() if text.isupper() else text


def _found(root: Path, pattern: str, but: str = "") -> Iterator[str]:
    for path in sorted(root.glob(pattern)):
        page = path.relative_to(root).with_suffix("").as_posix()
        if page != but:
            yield page


def _named(root: Path, page: str) -> Iterator[str]:
    if any(root.glob(f"{page}.*")):
        yield page


def _tree(caption: str, pages: Iterator[str] | tuple[str, ...]) -> str:
    entries = "\n".join(f"{words(page)} </{page}>" for page in pages)
    title = f":caption: {caption}\n" if caption else ""
    return f"\n\n```{{toctree}}\n:hidden:\n{title}\n{entries}\n```\n" if entries else ""
