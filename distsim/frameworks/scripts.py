"""The scripts of the four ways as text, and how many statements a user writes in each."""

from __future__ import annotations

import ast
from pathlib import Path


def script(way: str) -> str:
    """The source of a way's script."""
    return Path(__file__).with_name(f"{way}.py").read_text("utf-8")


def statements(way: str) -> int:
    """How many statements a user writes for this way, without imports and without what notes the losses.

    >>> statements("bare"), statements("lightning_way")
    (13, 12)
    """
    tree = ast.parse(script(way))
    return sum(map(_statements, (node for node in tree.body if getattr(node, "name", "") != "Noting")))


def _statements(node: ast.stmt) -> int:
    """Those of a definition or a loop, itself included. `train` is the place where the script stands."""
    if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node) or _notes(node):
        return 0
    own = not (isinstance(node, ast.FunctionDef) and node.name == "train")
    return own + sum(map(_statements, getattr(node, "body", [])))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _notes(node: ast.stmt) -> bool:
    """Whether a call or a condition is about the record of the losses."""
    about = node.test if isinstance(node, ast.If) else node.value if isinstance(node, ast.Expr) else None
    return about is not None and any(isinstance(one, ast.Name) and one.id == "record" for one in ast.walk(about))
