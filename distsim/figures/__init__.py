"""Figures: a trace or a table in, a plotly figure with its sentence and table out. They simulate and read nothing.

The names are those of the table in `catalogue`. Each loads at its first use, so that the command line starts without
plotly.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from distsim.figures.catalogue import MODULES

if TYPE_CHECKING:
    from distsim.figures.catalogue import *  # noqa: F403 # the table says the names

__all__ = sorted(MODULES)  # from the table


class _Package(ModuleType):
    """This package: the name of a figure is its function, although its module has the same name."""

    def __getattr__(self, name: str) -> object:
        if name not in MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{self.__name__}.{MODULES[name]}"), name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in MODULES:  # the import of a figure's module would put that module in the function's place
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Package
