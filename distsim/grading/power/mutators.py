"""General mutators: each yields wrong replacements for a node of a right solution."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from distsim.grading.power.source import Place
from distsim.grading.power.syntax import is_docstring

Replacement = ast.AST | list[ast.stmt]
Make = Callable[[Place], Iterator[Replacement]]

BOUNDS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OTHERS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Mod: ast.Mult, ast.LShift: ast.Mult, ast.BitXor: ast.Add,
}  # fmt: skip
ONE_SIDED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.Pow)  # a and b are not alike in a - b
DROPPED = (ast.Expr, ast.AugAssign, ast.For, ast.While, ast.If, ast.With, ast.Continue, ast.Break)
AS_NUMBERS = ("range", "src", "dst", "root")  # a function or keyword whose value is a number


@dataclass(frozen=True)
class Mutator:
    """A kind of change. trade: whether it is one of distributed training. helper: code that its mutants need."""

    name: str
    make: Make
    trade: bool = False
    helper: str = ""


def off_by_one(place: Place) -> Iterator[Replacement]:
    """A whole number becomes one larger and one smaller; so does an end of a range that is no plain number."""
    node = place.node
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield ast.Constant(number + 1)
            yield ast.Constant(number - 1)
        case ast.Call(func=ast.Name(id="range"), args=[*ends]) if not isinstance(ends[-1], ast.Constant):
            for number in (1, -1):
                changed = copy.deepcopy(node)
                assert isinstance(changed, ast.Call)
                end = min(1, len(ends) - 1)
                changed.args[end] = ast.BinOp(changed.args[end], ast.Add(), ast.Constant(number))
                yield changed


def swap_arguments(place: Place) -> Iterator[Replacement]:
    """Two neighbouring arguments of a call change places."""
    node = place.node
    if not isinstance(node, ast.Call) or any(isinstance(one, ast.Starred) for one in node.args):
        return
    for first in range(len(node.args) - 1):
        changed = copy.deepcopy(node)
        changed.args[first], changed.args[first + 1] = changed.args[first + 1], changed.args[first]
        yield changed


def swap_operands(place: Place) -> Iterator[Replacement]:
    """Both sides of a subtraction, division or remainder change places."""
    match place.node:
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, ONE_SIDED):
            yield ast.BinOp(right, operator, left)


def drop_statement(place: Place) -> Iterator[Replacement]:
    """A statement without a value of its own is left out; a loop or condition is left out with its body."""
    if isinstance(place.node, DROPPED) and not is_docstring(place.node) and place.index is not None:
        yield []


def drop_condition(place: Place) -> Iterator[Replacement]:
    """The body of a condition without another branch always runs."""
    match place.node:
        case ast.If(body=body, orelse=[]):
            yield list(body)


def constant_for_variable(place: Place) -> Iterator[Replacement]:
    """A variable that is calculated with, or names a rank, becomes 0 or 1."""
    node, parent = place.node, place.parent
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id.isupper():
        return
    match parent:
        case ast.BinOp() | ast.Compare() | ast.Subscript(slice=ast.Name()):
            numbers = place.field != "value"
        case ast.Call(func=ast.Name(id=name)):
            numbers = place.field == "args" and name in AS_NUMBERS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"))):
            numbers = place.field == "args" and place.index != 0
        case ast.keyword(arg=name):
            numbers = name in AS_NUMBERS
        case _:
            numbers = False
    if numbers:
        yield ast.Constant(0)
        yield ast.Constant(1)


def other_division(place: Place) -> Iterator[Replacement]:
    """`//` becomes `/` and the other way round."""
    match place.node:
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            yield ast.BinOp(left, ast.Div(), right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            yield ast.BinOp(left, ast.FloorDiv(), right)


def other_operator(place: Place) -> Iterator[Replacement]:
    """`+` becomes `-`, `*` becomes `/`, `%` becomes `*`, in an expression and in an assignment such as `a += b`."""
    match place.node:
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OTHERS:
            yield ast.BinOp(left, OTHERS[type(operator)](), right)
        case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in OTHERS:
            yield ast.AugAssign(target, OTHERS[type(operator)](), value)
            yield ast.Assign([target], value, lineno=1)


def and_or(place: Place) -> Iterator[Replacement]:
    """`and` becomes `or` and the other way round; or one side of it is left out."""
    match place.node:
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for left_out in range(len(values)):
                rest = [value for number, value in enumerate(values) if number != left_out]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)


def comparison_bounds(place: Place) -> Iterator[Replacement]:
    """`<` becomes `<=`, and so on."""
    match place.node:
        case ast.Compare(left=left, ops=operators, comparators=others):
            for index, operator in enumerate(operators):
                if type(operator) in BOUNDS:
                    changed = [*operators[:index], BOUNDS[type(operator)](), *operators[index + 1 :]]
                    yield ast.Compare(left, changed, others)


def negated_condition(place: Place) -> Iterator[Replacement]:
    """A condition becomes its opposite."""
    node = place.node
    conditional = isinstance(place.parent, (ast.If, ast.While, ast.IfExp)) and place.field == "test"
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=others) if type(operator) in OPPOSITES:
            yield ast.Compare(left, [OPPOSITES[type(operator)]()], others)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.expr() if conditional or (isinstance(place.parent, ast.comprehension) and place.field == "ifs"):
            yield ast.UnaryOp(ast.Not(), node)


def other_truth(place: Place) -> Iterator[Replacement]:
    """True becomes False and the other way round."""
    match place.node:
        case ast.Constant(value=bool(value)) if not _is_strict(place.parent):
            yield ast.Constant(not value)


def drop_keyword(place: Place) -> Iterator[Replacement]:
    """A keyword argument is left out."""
    node = place.node
    if not isinstance(node, ast.Call):
        return
    for index, keyword in enumerate(node.keywords):
        if not _is_strict(keyword):
            yield ast.Call(node.func, node.args, [*node.keywords[:index], *node.keywords[index + 1 :]])


def _is_strict(node: ast.AST) -> bool:
    """Whether this is the keyword `strict` of zip: in a right solution both sides are as long."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


GENERAL = [
    Mutator(make.__name__, make)
    for make in (
        off_by_one, swap_arguments, swap_operands, drop_statement, drop_condition, constant_for_variable,
        other_division, other_operator, and_or, comparison_bounds, negated_condition, other_truth, drop_keyword,
    )
]  # fmt: skip
