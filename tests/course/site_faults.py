"""What is wrong with a built site: links and anchors that lead nowhere, what would be fetched, pages without a head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

FETCHED = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src",
    "object": "data", "embed": "src", "image": "href", "use": "href",
}  # fmt: skip
URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def dead_links(site: Path) -> Iterator[str]:
    """Links within the site to a file or an anchor that is not there, and those that leave it for the disk."""
    for path in pages(site):
        for element in parsed(path).find_all("a", href=True):
            link = urlsplit(str(element["href"]))
            if link.scheme in ("http", "https", "mailto"):
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            told = f"{path.relative_to(site)}: {element['href']}"
            there = not link.scheme and not link.netloc and target.is_relative_to(site.resolve()) and target.is_file()
            if not there or (link.fragment and unquote(link.fragment) not in _anchors(target)):
                yield told


@cache
def _anchors(path: Path) -> set[str]:
    return {str(element["id"]) for element in parsed(path).find_all(id=True)} | {""}


def foreign(site: Path) -> Iterator[str]:
    """Scripts, styles, pictures and fonts that are not in the site."""
    for path in pages(site):
        for name, attribute in FETCHED.items():
            for element in parsed(path).find_all(name, attrs={attribute: True}):
                if not _ours(site, path, str(element[attribute])):
                    yield f"{path.relative_to(site)}: {name} {element[attribute]}"
        for styles in parsed(path).find_all("style"):
            yield from _in_styles(site, path, styles.get_text())
    for path in sorted(site.rglob("*.css")):
        yield from _in_styles(site, path, path.read_text("utf-8"))


def _in_styles(site: Path, path: Path, text: str) -> Iterator[str]:
    for found in URL.findall(text):
        if not _ours(site, path, found[0] or found[1]):
            yield f"{path.relative_to(site)}: {found[0] or found[1]}"


def _ours(site: Path, path: Path, address: str) -> bool:
    link = urlsplit(address)
    if link.scheme == "data" or address.startswith("#"):
        return True
    target = (path.parent / unquote(link.path)).resolve()
    return not link.scheme and not link.netloc and target.is_relative_to(site.resolve()) and target.is_file()


def without_head(site: Path) -> Iterator[str]:
    """Pages without a title, or with more or less than one heading of the first level."""
    for path in pages(site):
        title = parsed(path).find("title")
        if title is None or not title.get_text(strip=True):
            yield f"{path.relative_to(site)}: no title"
        if len(parsed(path).find_all("h1")) != 1:
            yield f"{path.relative_to(site)}: {len(parsed(path).find_all('h1'))} first headings"
