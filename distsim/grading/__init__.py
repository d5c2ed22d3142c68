"""Graded labs: checks, their findings and results, and the grading of submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distsim.grading.check import Finding, check
from distsim.grading.result import Result

if TYPE_CHECKING:
    from distsim.grading.notebook import Notebook

__all__ = ["Finding", "Notebook", "Result", "check"]


def __getattr__(name: str) -> object:
    """Loads the notebook's own name at its first use: the process that grades runs the notebook elsewhere."""
    if name != "Notebook":
        raise AttributeError(f"module 'distsim.grading' has no attribute {name!r}")
    from distsim.grading.notebook import Notebook

    return Notebook


def __dir__() -> list[str]:
    return __all__
