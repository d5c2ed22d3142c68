"""Every name that a notebook, an exercise, a lab or a page imports from distsim exists; nothing is executed."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for pattern in ("course/**/*.ipynb", "labs/*/lab.ipynb", "course/**/*.py", "labs/**/*.py", "*.md", "course/*.md")
    for path in sorted(ROOT.glob(pattern))
    if ".ipynb_checkpoints" not in path.parts
]
FENCED = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MAGIC = re.compile(r"^\s*[!%].*$", re.MULTILINE)


def programs(path: Path) -> Iterator[str]:
    """The Python programs of a file: its cells, its blocks, or the file itself."""
    if path.suffix == ".ipynb":
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                yield MAGIC.sub("", cell.source)
    elif path.suffix == ".md":
        yield from FENCED.findall(path.read_text("utf-8"))
    else:
        yield path.read_text("utf-8")


def imported(program: str) -> Iterator[tuple[str, str]]:
    """(module, name) for each import from distsim."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "distsim":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "__name__") for alias in node.names if alias.name.split(".")[0] == "distsim")


def missing(module: str, name: str) -> bool:
    found = importlib.import_module(module)
    if hasattr(found, name):
        return False
    try:
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return True
    return False


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_name_imported_from_distsim_exists(path: Path) -> None:
    names = {pair for program in programs(path) for pair in imported(program)}
    assert [pair for pair in sorted(names) if missing(*pair)] == []
