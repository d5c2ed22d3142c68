"""Python files of the user's own, named as "my_file.py:name": loading them, and the place of an error in them."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


def module_of(path: Path, prefix: str) -> ModuleType:
    """Runs the file as a module with a name of its own. Raises what the file raises, or ImportError."""
    name = f"distsim_{prefix}_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def place_of(error: BaseException, file: str | None, but: str = "") -> str:
    """The place in `file` at which the error occurred, or else the place that raised it: "file.py:line".

    but: a file of distsim whose frames do not count.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in (but, __file__)]
    own = [frame for frame in frames if frame.filename == file] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else f"{Path(file or '').name}"


@contextmanager
def importing_beside(path: Path) -> Iterator[None]:
    """Lets the file import modules of its own folder while the block lasts."""
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
