"""Functions that draw a trace or a table as a plotly figure with sentence and table. They simulate and read nothing.

The table in `catalogue` holds the names. Each figure's module loads at its first use, so that the command line starts
without plotly.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from distsim.figures.catalogue import MODULES

if TYPE_CHECKING:
    from distsim.figures.catalogue import *  # noqa: F403 # the table holds the names

__all__ = sorted(MODULES)  # from the table


class _Package(ModuleType):
    """This package: the name of a figure is its function, although its module has the same name."""

    def __getattr__(self, name: str) -> object:
        if name not in MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{self.__name__}.{MODULES[name]}"), name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in MODULES:  # importing a figure's module would replace the function by the module
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Package
