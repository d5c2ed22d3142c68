"""Makes the student's file from the solution: the lines from `# write` to `# end` are left for the student.

    def average(gradient):                            def average(gradient):
        \"\"\"Divides `gradient` by the ranks.\"\"\"           \"\"\"Divides `gradient` by the ranks.\"\"\"
        ranks = dist.get_world_size()          ──►        ranks = dist.get_world_size()
        # write                                           raise NotImplementedError("write average: Divides ...")
        gradient /= ranks
        # end

Each comment stands alone on its line. In a function, the part becomes one `raise`, which quotes the function's
docstring; outside functions, the part is removed. Everything else is copied unchanged.
"""

from __future__ import annotations

import ast
import io
import json
import re
import textwrap
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from distsim import files
from distsim.errors import InputError
from distsim.files import write_text
from distsim.grading.lab import MOST_MEGABYTES, SOLUTION, TASKS, Lab

BEGIN, END = "# write", "# end"
WIDTH = 120
TRIVIAL_CHARACTERS = 15  # shorter lines, such as `return total`, give nothing away
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Part:
    """Lines of a solution that the student writes. first, last: the lines of the comments, counted from 1."""

    first: int
    last: int
    indent: str


def stub(solution: str, source: str = SOLUTION) -> str:
    """The student's file.

    Raises InputError, which names `source` and the line, if a comment has no partner, a function has no docstring, or
    either file is not Python.

    >>> print(stub('def one():\\n    "Gives 1."\\n    # write\\n    return 1\\n    # end\\n'))
    def one():
        "Gives 1."
        raise NotImplementedError("write one: Gives 1.")
    <BLANKLINE>
    """
    tree = _tree(solution, source)
    lines = solution.splitlines(keepends=True)
    for part in reversed(_parts(solution, source)):
        owner = _owner(tree, part)
        if owner is not None:
            lines[part.first - 1 : part.last] = [_raise(*owner, part, source)]
            continue
        before, after = lines[: part.first - 1], lines[part.last :]
        gap = max(_blank(reversed(before)), _blank(after))
        lines = [*before[: len(before) - _blank(reversed(before))], *["\n"] * gap, *after[_blank(after) :]]
    made = "".join(lines)
    _tree(made, f"what is left of {source}")
    return made


def removed_lines(solution: str, source: str = SOLUTION) -> set[str]:
    """The lines that give the solution away, without indentation: those that the stub leaves out and does not repeat.

    Short lines and imports are excluded.
    """
    lines = solution.splitlines()
    inside = {line.strip() for part in _parts(solution, source) for line in lines[part.first : part.last - 1]}
    kept = {line.strip() for line in stub(solution, source).splitlines()}
    return {
        line for line in inside - kept if len(line) > TRIVIAL_CHARACTERS and not line.startswith(("import ", "from "))
    }


def written_lines(solution: str, source: str = SOLUTION) -> set[int]:
    """The numbers of the lines that students write: those between `# write` and `# end`, counted from 1."""
    return {number for part in _parts(solution, source) for number in range(part.first + 1, part.last)}


def stub_of(lab: Lab) -> str:
    """The student's file of a lab. Raises InputError if there is no solution, as in a released lab."""
    return stub(solution_of(lab), str(lab.folder / SOLUTION))


def solution_of(lab: Lab) -> str:
    """The text of a lab's solution.py."""
    path = lab.folder / SOLUTION
    if not path.is_file():
        raise InputError.of("solution", str(path), "is not there", "name a lab of the instructor's folder by --labs")
    return files.read(path, MOST_MEGABYTES).decode("utf-8")


def write_stub(lab: Lab) -> Path:
    """Writes tasks.py beside solution.py."""
    path = lab.folder / TASKS
    write_text(path, stub_of(lab))
    return path


def up_to_date(lab: Lab) -> bool:
    """Whether tasks.py matches the solution."""
    path = lab.folder / TASKS
    return path.is_file() and path.read_text("utf-8") == stub_of(lab)


def _blank(lines: Iterable[str]) -> int:
    """The number of empty lines at the start."""
    return sum(1 for _ in takewhile(lambda line: not line.strip(), lines))


def _tree(text: str, source: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        rule = f"is no Python ({error.msg})"
        line = text.splitlines()[error.lineno - 1] if error.lineno else ""
        raise InputError.of(f"{source}, line {error.lineno}", line, rule, "repair the line") from None


def _parts(text: str, source: str) -> list[Part]:
    found: list[Part] = []
    opened: Part | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string not in (BEGIN, END):
            continue
        line, indent = token.start[0], token.line[: token.start[1]]
        if indent.strip() or (token.string == BEGIN) != (opened is None):
            rule = f"must stand alone on its line, and every {BEGIN} must have its {END}"
            raise InputError.of(f"{source}, line {line}", token.line.strip(), rule, "write both around what to remove")
        if opened is None:
            opened = Part(line, line, indent)
        else:
            found.append(Part(opened.first, line, opened.indent))
            opened = None
    if opened is not None:
        raise InputError.of(f"{source}, line {opened.first}", BEGIN, f"has no {END}", f"write {END} on a line below")
    if not found:
        raise InputError.of(source, BEGIN, "is nowhere in it", f"write {BEGIN} and {END} around the students' part")
    return found


def _owner(tree: ast.AST, part: Part, names: tuple[str, ...] = ()) -> tuple[str, Function] | None:
    """The innermost function around a part, with its qualified name."""
    found = None
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            inner = (*names, node.name)
            if node.lineno < part.first and _last_line(node, part) >= part.last:
                found = _owner(node, part, inner) or (
                    None if isinstance(node, ast.ClassDef) else (".".join(inner), node)
                )
        elif found is None:
            found = _owner(node, part, names)
    return found


def _last_line(node: ast.stmt, part: Part) -> int:
    """The last line of a function, including a closing comment that is indented as the function's body."""
    assert node.end_lineno is not None
    inside = len(part.indent) > node.col_offset and node.end_lineno >= part.first
    return max(node.end_lineno, part.last) if inside else node.end_lineno


def _raise(name: str, function: Function, part: Part, source: str) -> str:
    doc = ast.get_docstring(function)
    if not doc:
        rule = "has a part to write and no docstring"
        raise InputError.of(f"{source}, line {function.lineno}", name, rule, "give it one sentence")
    said = json.dumps(f"write {name}: {_first_sentence(doc)}", ensure_ascii=False)
    line = f"{part.indent}raise NotImplementedError({said})\n"
    if len(line) <= WIDTH + 1:
        return line
    inner = part.indent + "    "
    if len(inner) + len(said) <= WIDTH:
        return f"{part.indent}raise NotImplementedError(\n{inner}{said}\n{part.indent})\n"
    pieces = textwrap.wrap(
        said[1:-1], WIDTH - len(inner) - 3, drop_whitespace=False, break_on_hyphens=False, break_long_words=False
    )
    body = "".join(f'{inner}"{piece}"\n' for piece in pieces)
    return f"{part.indent}raise NotImplementedError(\n{body}{part.indent})\n"


def _first_sentence(doc: str) -> str:
    """The first sentence of a docstring, in one line."""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]
