"""Finds the functions in a tasks.py that are still to be written: those that reach the stub's `raise`.

The file is parsed, not run, so that all ranks have the same list before they start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MARK = "write "  # how the text of the stub's NotImplementedError begins


@dataclass(frozen=True)
class Unwritten:
    """A function that is still to be written. name: qualified by its class; line: in tasks.py."""

    name: str
    line: int

    def __str__(self) -> str:
        return f"still to be written: {self.name} (tasks.py, line {self.line})"


def unwritten(text: str) -> list[Unwritten]:
    """The functions with the stub's `raise`, in file order; none if the text is not Python.

    >>> print(*unwritten('def one():\\n    raise NotImplementedError("write one: Gives 1.")\\n'))
    still to be written: one (tasks.py, line 2)
    """
    found = [Unwritten(name, node.lineno) for node, name in _raises(_body(text))]
    return sorted(found, key=lambda one: one.line)


def blocked(text: str) -> list[str]:
    """The functions and classes that cannot run yet: those still to be written, and those that use one of them.

    Methods still to be written are listed too, such as Sampler.set_epoch.

    >>> blocked('def two(): return 2 * one()\\ndef one(): raise NotImplementedError("write one")\\ndef six(): return 6')
    ['two', 'one']
    """
    parts = {node.name: node for node in _body(text) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names = {name: _named(node) & parts.keys() for name, node in parts.items()}
    found = {name for name, node in parts.items() if any(_raises([node]))}
    while further := {name for name in names.keys() - found if names[name] & found}:
        found |= further
    return [name for name in parts if name in found] + [one.name for one in unwritten(text) if "." in one.name]


def _body(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return []  # the run reports the error with its line


def _raises(body: Iterable[ast.AST]) -> Iterator[tuple[ast.Raise, str]]:
    """Each reachable `raise` of the stub, with its function's name. A `raise` behind a `return` is unreachable."""
    for node in body:
        if isinstance(node, ast.Raise) and (name := _function_to_write(node)):
            yield node, name
        if isinstance(node, (ast.Return, ast.Raise)):
            return
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _raises(getattr(node, inner, []))


def _function_to_write(node: ast.Raise) -> str:
    match node.exc:
        case ast.Call(func=ast.Name(id="NotImplementedError"), args=[ast.Constant(value=str(said))]):
            return said.removeprefix(MARK).split(":")[0] if said.startswith(MARK) else ""
    return ""


def _named(node: ast.AST) -> set[str]:
    """The names that a function or class uses from outside: not its own variables and arguments."""
    parts = list(ast.walk(node))
    names = [one for one in parts if isinstance(one, ast.Name)]
    own = {one.id for one in names if isinstance(one.ctx, ast.Store)} | {
        one.arg for one in parts if isinstance(one, ast.arg)
    }
    return {one.id for one in names} - own
