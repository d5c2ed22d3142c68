"""A Python file of ours that stands beside notebooks and not in the package: imported by its path, and trusted."""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from distsim.errors import InputError


def imported(path: Path, name: str, asked: str) -> ModuleType:
    """The file as a module of that name. Raises InputError, which speaks of `asked`, where it is broken."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # a dataclass looks for its own module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        reason = f"cannot be imported ({told(error, path.name)})"
        raise InputError.of(asked, str(path), reason, "repair the file") from error
    return module


def told(error: BaseException, file: str) -> str:
    """The error, and the last line of that file which it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    place = f" ({file}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
