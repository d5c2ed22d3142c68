"""One letter for one quantity, in chapters, labs and the package: those of the glossary's table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "course" / "GLOSSARY.md").read_text("utf-8")
NOTEBOOKS = sorted([*(ROOT / "course").glob("[0-9]*.ipynb"), *(ROOT / "labs").glob("*/lab.ipynb")])
MODULES = sorted([*(ROOT / "distsim" / "theory").glob("*.py"), *(ROOT / "distsim" / "collectives").glob("*.py")])
LINK = r"(?:\]\([^)]*\))?"  # the end of a link to the glossary
LETTER = r"\$?(?<![\w\\'])([A-Za-z])(?![\w'.])\$?"
PARTS = {"K", "g", "d", "t", "q"}  # of the N workers: the first K, and groups of g, d, t or q
# How a text names a quantity beside its letter, and the letters that fit.
NAMED = {
    rf"{LETTER} (?:equal |healthy |other )?(?:\[?workers|\[?ranks|processes|GPUs)\b": {"N", *PARTS},
    rf"\bbandwidth{LINK}(?: of| is)? {LETTER}(?= |,|\.|;|$)": {"B"},
    rf"\blatency{LINK}(?: of| is)? {LETTER}(?= |,|\.|;|$)": {"a"},
    rf"{LETTER} bytes per second": {"B"},
    rf"{LETTER} bytes(?! per)": {"n"},
    rf"{LETTER} (?:parameter )?servers\b": {"M", "N"},  # with as many servers as workers
    rf"\bspeed-up{LINK}(?: of| is)? {LETTER}(?= |,|\.|;|$)": {"S"},
}
ARTICLES = ("a", "A", "I")  # one-letter words, where they stand without dollars


def misnamed(text: str) -> list[str]:
    """Where a text gives a quantity of the glossary another letter."""
    found = []
    for pattern, letters in NAMED.items():
        for match in re.finditer(pattern, text):
            word = match[1] in ARTICLES and "$" not in match[0]
            if match[1] not in letters and not word:
                found.append(match[0])
    return found


def docstrings(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return "\n".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_chapters_and_labs_use_the_letters_of_the_glossary(path: Path) -> None:
    found = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in found.cells if cell.cell_type == "markdown")
    assert misnamed(text) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_package_uses_the_letters_of_the_glossary(path: Path) -> None:
    assert misnamed(docstrings(path)) == []


def test_the_table_has_each_letter_once_and_the_letters_that_are_watched() -> None:
    rows = re.findall(r"^\| (\w) \| .+ \|.*\|$", GLOSSARY, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set.union(*NAMED.values()) <= {*rows, *PARTS}


@pytest.mark.parametrize(
    "text",
    [
        "a ring of $W$ workers", "Let $p$ [ranks](GLOSSARY.md#rank) send", "with a latency of $t$.",
        "of [bandwidth](GLOSSARY.md#bandwidth) $C$ and", "$\\alpha$ and $m$ bytes travel", "$k$ servers",
        "links of $R$ bytes per second", "for p ranks", "The [speed-up](GLOSSARY.md#speed-up) $R$ is",
        "the bandwidth b, the rest",
    ],
)  # fmt: skip
def test_another_letter_is_found(text: str) -> None:
    assert misnamed(text)


@pytest.mark.parametrize(
    "text",
    [
        "a ring of $N$ workers", "the first $K$ workers", "a bandwidth of 5 Gbit/s", "a latency $a$, and",
        "$n$ bytes of it",
        "links of $B$ bytes per second", "$M$ servers", "the latency a rank sees", "a workers' room",
    ],
)  # fmt: skip
def test_the_right_letter_is_none(text: str) -> None:
    assert misnamed(text) == []
