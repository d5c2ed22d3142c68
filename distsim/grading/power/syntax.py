"""Questions about trees of Python, and the making of new ones: what mutators are written with."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from distsim.grading.stub import FUNCTIONS, Function

TENSORS = ("tensor", "outgoing", "incoming", "parts", "piece", "pieces", "parameters", "params", "push")


def wrapped(function: Function, call: str, change: ast.NodeTransformer | None = None) -> list[ast.stmt]:
    """The function under another name, and one in its place that calls it. call: with {inner}, given and named.

    A static method holds the other function as a default, since the names of a class body are not seen inside it.
    """
    inner, outer = copy.deepcopy(function), copy.deepcopy(function)
    inner.name = f"_whole_{function.name}"
    if change is not None:
        change.visit(inner)
    method = bool(function.args.args) and function.args.args[0].arg == "self"
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
    name = f"type(given[0])._whole_{function.name}" if method else "_inner" if static else inner.name
    outer.body = ast.parse(f"return {call.format(inner=name, site=function.name)}").body
    names: list[ast.arg] = [ast.arg("_inner")] if static else []
    values: list[ast.expr | None] = [ast.Name(inner.name)] if static else []
    outer.args = ast.arguments([], [], ast.arg("given"), names, values, ast.arg("named"), [])
    outer.decorator_list, outer.returns = outer.decorator_list if static else [], None
    return [inner, outer]


def is_dunder(node: ast.AST) -> bool:
    return isinstance(node, FUNCTIONS) and node.name.startswith("__")


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def takes_tensors(node: ast.AST) -> bool:
    """Whether an argument is called as tensors are called; other right solutions have no annotations."""
    return isinstance(node, FUNCTIONS) and any(one.arg in TENSORS for one in node.args.args)


def is_generator(node: ast.AST) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))


def has_yield(node: ast.AST) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.NamedExpr)) for one in ast.walk(node))


def is_wait(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="wait"))):
            return True
    return False


def begins(node: ast.AST) -> bool:
    """Whether a call begins a message or a collective, and returns a work to wait for."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="isend" | "irecv" | "batch_isend_irecv")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist")), keywords=keywords):
            return any(one.arg == "async_op" and ast.unparse(one.value) == "True" for one in keywords)
    return False


def calls_of_dist(node: ast.AST) -> set[str]:
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "dist"
    }


def is_fresh(name: str, function: Function) -> bool:
    """Whether a variable is made in the function by a call, or from a number: nobody else has its tensor."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target, value in pairs(targets[0], node.value):
                if isinstance(target, ast.Name) and target.id == name:
                    return isinstance(value, (ast.Constant, ast.Call, ast.BinOp, ast.List))
    return False


def pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(expression(name), list(args), [])


def later(body: ast.expr) -> ast.Lambda:
    """A function without arguments that computes the expression each time it is called."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    stored = copy.deepcopy(target)
    stored.ctx = ast.Store()  # type: ignore[attr-defined]
    return ast.Assign([stored], value, lineno=1)
