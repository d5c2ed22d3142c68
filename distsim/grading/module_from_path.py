"""Imports a trusted Python file outside the package, such as checks.py, by its path."""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from distsim.errors import InputError


def imported(path: Path, name: str, asked: str) -> ModuleType:
    """The file as a module called `name`. Raises InputError about `asked` if the file cannot be imported."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        reason = f"cannot be imported ({error_with_line(error, path.name)})"
        raise InputError.of(asked, str(path), reason, "repair the file") from error
    return module


def error_with_line(error: BaseException, file: str) -> str:
    """The error as text, with the last line of `file` in its traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    place = f" ({file}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
