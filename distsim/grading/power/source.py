"""A right solution as a tree, with the places that a mutator may change: those in the functions that students write."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from distsim import files
from distsim.errors import InputError
from distsim.grading.lab import MOST_MEGABYTES, SOLUTION, Lab
from distsim.grading.power.syntax import is_docstring
from distsim.grading.stub import FUNCTIONS, Function, written_lines

OTHER = "other.py"
MODULE = "module"  # stands for the function where a change concerns the whole file
LEFT_ALONE = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Place:
    """A node that may be changed. It stands in `field` of `parent`, at `index` where that field is a list.

    function: the outermost function or method around the node, by its qualified name. number: of the node's statement
    in that function, from 1; 0 for the function itself. line: the first line of that statement, as Python prints it.
    """

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    function: str
    definition: Function | None
    number: int
    line: str

    def put(self, replacement: ast.AST | list[ast.stmt]) -> None:
        """Replaces the node in its tree. An empty list of statements becomes `pass`."""
        if self.index is None:
            setattr(self.parent, self.field, replacement)
            return
        found = getattr(self.parent, self.field)
        new: list[ast.AST] = [*replacement] if isinstance(replacement, list) else [replacement]
        if self.field == "body" and len(found) == 1 and not new:
            new = [ast.Pass()]
        setattr(self.parent, self.field, [*found[: self.index], *new, *found[self.index + 1 :]])

    @property
    def is_whole_function(self) -> bool:
        """Whether the node is a function that students write in part or whole, and not one inside it."""
        return isinstance(self.node, FUNCTIONS) and self.number == 0

    @property
    def site(self) -> str:
        """A name of the place, for values that its line keeps between calls."""
        return f"{self.function}:{self.number}:{getattr(self.node, 'col_offset', 0)}"

    def kept(self) -> tuple[ast.AST, str, object]:
        """What `restore` needs."""
        return self.parent, self.field, getattr(self.parent, self.field)


def restore(kept: tuple[ast.AST, str, object]) -> None:
    """Undoes a `Place.put`."""
    setattr(*kept)


@dataclass(frozen=True)
class Source:
    """A right solution. name: "solution" or "other"; text: of the file."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def plain(self) -> str:
        """The file as Python prints it, without comments, for comparisons."""
        return ast.unparse(self.tree)

    @cached_property
    def _written(self) -> set[int] | None:
        return None if self.name == "other" else written_lines(self.text)

    def functions(self) -> Iterator[tuple[str, Function, ast.AST]]:
        """The functions and methods that students write in part or whole, with qualified name and parent."""
        for name, node, parent in self._all_functions():
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if self._written is None or not self._written.isdisjoint(lines):
                yield name, node, parent

    def _all_functions(self) -> Iterator[tuple[str, Function, ast.AST]]:
        for node in self.tree.body:
            if isinstance(node, FUNCTIONS):
                yield node.name, node, self.tree
            elif isinstance(node, ast.ClassDef):
                yield from ((f"{node.name}.{one.name}", one, node) for one in node.body if isinstance(one, FUNCTIONS))

    def places(self) -> Iterator[Place]:
        """All places, in the order of the file: the whole file, then each function, and then the nodes inside it."""
        yield Place(self.tree, ast.Interactive(body=[]), "body", None, MODULE, None, 0, "")
        for name, node, parent in self.functions():
            index = parent.body.index(node)  # type: ignore[attr-defined]
            head = next(line for line in ast.unparse(node).splitlines() if not line.startswith("@"))
            yield Place(node, parent, "body", index, name, node, 0, head)
            yield from _Walk(name, node, self._written).places()

    def callers(self) -> dict[str, set[str]]:
        """For each function, itself and those that call it, also by way of others."""
        nodes = {name: node for name, node, _ in self._all_functions()}
        uses = {name: _names(node) for name, node in nodes.items()}
        found = {name: {name} for name in nodes}
        grows = True
        while grows:
            grows = False
            for callers in found.values():
                wanted = {one.rpartition(".")[2] for one in callers}
                more = {one for one, used in uses.items() if used & wanted} - callers
                callers |= more
                grows = grows or bool(more)
        return found


class _Walk:
    """The nodes inside one function."""

    def __init__(self, name: str, definition: Function, written: set[int] | None) -> None:
        self._name, self._definition, self._written = name, definition, written
        self._number, self._line = 0, ""

    def places(self) -> Iterator[Place]:
        yield from self._within(self._definition, "body")

    def _within(self, parent: ast.AST, field: str) -> Iterator[Place]:
        value = getattr(parent, field)
        if isinstance(value, list):
            for index, node in enumerate(list(value)):
                if isinstance(node, ast.AST):
                    yield from self._one(node, parent, field, index)
        elif isinstance(value, ast.AST):
            yield from self._one(value, parent, field, None)

    def _one(self, node: ast.AST, parent: ast.AST, field: str, index: int | None) -> Iterator[Place]:
        if isinstance(node, ast.stmt):
            if is_docstring(node):
                return
            self._number += 1
            self._line = ast.unparse(node).splitlines()[0]
        number, line = self._number, self._line
        if self._may_change(node):
            yield Place(node, parent, field, index, self._name, self._definition, number, line)
        if isinstance(node, LEFT_ALONE):
            return
        for inner in node._fields:
            if inner not in ("annotation", "returns", "decorator_list", "ctx"):
                yield from self._within(node, inner)
                self._line = line if not isinstance(node, ast.stmt) else self._line

    def _may_change(self, node: ast.AST) -> bool:
        number = getattr(node, "lineno", None)
        return number is not None and (self._written is None or number in self._written)


def _names(node: ast.AST) -> set[str]:
    parts = list(ast.walk(node))
    return {one.id for one in parts if isinstance(one, ast.Name)} | {
        one.attr for one in parts if isinstance(one, ast.Attribute)
    }


def sources(lab: Lab) -> list[Source]:
    """The lab's solution, and its second right solution if there is one.

    Raises InputError if the lab has no solution, as in a released lab.
    """
    found = []
    for file in (SOLUTION, OTHER):
        path = lab.folder / file
        if path.is_file():
            found.append(Source(path.stem, files.read(path, MOST_MEGABYTES).decode("utf-8")))
    if not found or found[0].name != "solution":
        cure = "name a lab of the instructor's folder by --labs"
        raise InputError.of("lab", str(lab.folder), f"has no {SOLUTION}, from which mutants are made", cure)
    return found
