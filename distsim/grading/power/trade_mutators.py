"""Mutators of the trade: the mistakes that people make with messages, collectives, ranks, buffers and training steps.

Some need code of their own in the mutant, which follows at its end: see `appended_code`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from distsim.grading.power import appended_code
from distsim.grading.power.mutators import Mutator, Replacement
from distsim.grading.power.source import MODULE, Place
from distsim.grading.power.syntax import (
    assign,
    begins,
    call,
    calls_of_dist,
    expression,
    has_yield,
    is_dunder,
    is_fresh,
    is_generator,
    is_wait,
    later,
    takes_tensors,
    wrapped,
)  # fmt: skip
from distsim.grading.stub import FUNCTIONS

WORLDS = {"even": "{0} // 2 * 2", "a power of two": "1 << {0}.bit_length() - 1", "two": "min(2, {0})"}
IN_PLACE = ("copy_", "add_", "sub_", "mul_", "div_", "fill_")
COPIES = ("clone", "contiguous", "detach")
NEW_TENSORS = ("empty_like", "zeros_like", "empty", "zeros", "new_empty", "new_zeros", "clone")
ORDERS = ("sorted", "reversed")
TORCHS_OWN = {  # by the end of a function's name: what torch.distributed does in its place
    "all_reduce": "all_reduce", "broadcast": "broadcast", "all_gather": "all_gather", "reduce": "reduce",
}  # fmt: skip
PRECISION_LOST = {"float64": "float32", "int64": "float32"}


def drop_wait(place: Place) -> Iterator[Replacement]:
    """A wait is left out."""
    if is_wait(place.node):
        yield []


def late_wait(place: Place) -> Iterator[Replacement]:
    """Whoever should be waited for is waited for when the function has done all else."""
    if place.number or not isinstance(place.node, FUNCTIONS) or place.definition is not place.node:
        return
    if not any(is_wait(node) for node in ast.walk(place.node)) or is_generator(place.node):
        return
    yield wrapped(place.node, "_waits_at_the_end({inner}, given, named)", _Later())


def immediate_wait(place: Place) -> Iterator[Replacement]:
    """What has begun is waited for at once."""
    if begins(place.node):
        assert isinstance(place.node, ast.expr)
        yield call("_done", place.node)


def wait_after_the_first_round(place: Place) -> Iterator[Replacement]:
    """In the first round all goes on while a message travels; later, each is waited for at once."""
    if begins(place.node):
        assert isinstance(place.node, ast.expr)
        yield call("_overlaps_once", ast.Constant(place.site), place.node)


def one_at_a_time(place: Place) -> Iterator[Replacement]:
    """An exchange begins only when the one before, of the same line, is over."""
    if begins(place.node):
        assert isinstance(place.node, ast.expr)
        yield call("_one_at_a_time", ast.Constant(place.site), later(place.node))


def blocking_for_non_blocking(place: Place) -> Iterator[Replacement]:
    """isend becomes send, and irecv becomes recv."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="isend" | "irecv" as name)):
            changed = copy.deepcopy(place.node)
            assert isinstance(changed, ast.Call)
            yield ast.Call(ast.Name("_blocking"), [expression(f"dist.{name[1:]}"), *changed.args], changed.keywords)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="batch_isend_irecv"), args=[operations]):
            yield call("_one_after_the_other", operations)


def one_buffer_for_all(place: Place) -> Iterator[Replacement]:
    """A new tensor is made only once for each shape and type: later ones are the same memory."""
    match place.node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in NEW_TENSORS:
            assert isinstance(place.node, ast.expr)
            yield call("_one_buffer", ast.Constant(place.site), place.node)


def no_copy(place: Place) -> Iterator[Replacement]:
    """What should be copied is shared."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=whole, attr=name), args=[]) if name in COPIES:
            yield whole


def rebound(place: Place) -> Iterator[Replacement]:
    """A result takes a new tensor, and the tensor that was to be changed in place stays as it was."""
    node = place.node
    match node:
        case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
            if place.definition is not None and not is_fresh(name, place.definition):
                yield assign(target, ast.BinOp(ast.Name(name), operator, value))
        case ast.AugAssign(target=ast.Attribute() as target, op=operator, value=value):
            yield assign(target, ast.BinOp(copy.deepcopy(target), operator, value))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=name) as method, args=args)):
            if name in IN_PLACE and isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
                assert isinstance(node.value, ast.Call)
                new = ast.Attribute(target, name[:-1])
                made = ast.Call(new, args, node.value.keywords)
                if name == "copy_":
                    made = ast.Call(ast.Attribute(args[0], "clone"), [], [])
                assert method.attr == name
                yield assign(target, made)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as target, slice=part)], value=value):
            whole = isinstance(part, ast.Slice) and part.lower is None and part.upper is None
            if whole or (isinstance(part, ast.Constant) and part.value is ...):
                yield assign(target, value)


def captured_once(place: Place) -> Iterator[Replacement]:
    """What is looked up or computed anew each time keeps the value of the first time."""
    match place.node:
        case ast.Assign(targets=[target], value=value):
            names = {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)}
            names |= {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
            if not names <= {"dist", "get_rank", "get_world_size"} and not has_yield(value):
                yield assign(target, call("_once", ast.Constant(place.site), later(value)))


def first_call_alone(place: Place) -> Iterator[Replacement]:
    """The function works once for each process: in the first step, bucket or tensor alone."""
    if place.is_whole_function and not is_generator(place.node) and not is_dunder(place.node):
        assert isinstance(place.node, FUNCTIONS)
        yield wrapped(place.node, "_first_call_alone({site!r}, {inner}, given, named)")


def first_turn_alone(place: Place) -> Iterator[Replacement]:
    """A loop takes the first turn alone, or leaves out the first or the last."""
    for_all = place.node
    if not isinstance(for_all, (ast.For, ast.comprehension)):
        return
    bounds = ("[:1]", "[1:]", "[:-1]") if isinstance(for_all, ast.For) else ("[1:]", "[:-1]")
    for part in bounds:
        changed = copy.deepcopy(for_all)
        changed.iter = expression(f"list({ast.unparse(for_all.iter)}){part}")
        yield changed


def other_order(place: Place) -> Iterator[Replacement]:
    """An order is left as it came, or a loop runs backwards."""
    match place.node:
        case ast.Call(func=ast.Name(id=name), args=[value]) if name in ORDERS:
            yield call("list", value)
        case ast.For(iter=value):
            changed = copy.deepcopy(place.node)
            assert isinstance(changed, ast.For)
            changed.iter = call("reversed", call("list", value))
            yield changed


def one_type_alone(place: Place) -> Iterator[Replacement]:
    """Tensors are computed with in single precision, whatever their type; or strided ones are not changed."""
    if place.is_whole_function and not is_generator(place.node) and takes_tensors(place.node):
        assert isinstance(place.node, FUNCTIONS)
        yield wrapped(place.node, "_in_single_precision({inner}, given, named)")
        yield wrapped(place.node, "_on_contiguous_copies({inner}, given, named)")


def other_precision(place: Place) -> Iterator[Replacement]:
    """float32 in place of float64."""
    match place.node:
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in PRECISION_LOST:
            yield expression(f"torch.{PRECISION_LOST[name]}")


def other_rank(place: Place) -> Iterator[Replacement]:
    """The rank on its machine in place of the rank among all, and the other way round."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="get_rank"), args=[]):
            yield expression("int(__import__('os').environ['LOCAL_RANK'])")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="get_world_size"), args=[]):
            yield expression("int(__import__('os').environ['LOCAL_WORLD_SIZE'])")
        case ast.Constant(value="LOCAL_RANK"):
            yield ast.Constant("RANK")
        case ast.Constant(value="RANK" | "WORLD_SIZE" as name):
            yield ast.Constant(f"LOCAL_{name}")


def some_worlds_alone(place: Place) -> Iterator[Replacement]:
    """Right for even numbers of ranks, for powers of two, or for two ranks alone."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="get_world_size"), args=[]):
            for form in WORLDS.values():
                yield expression(f"({form.format('dist.get_world_size()')})")


def torchs_own_for_some(place: Place) -> Iterator[Replacement]:
    """torch's collective does the work of one's own for small tensors, or for all but float32."""
    if not place.is_whole_function:
        return
    assert isinstance(place.node, FUNCTIONS)
    own = next((torchs for name, torchs in TORCHS_OWN.items() if place.node.name.endswith(name)), None)
    if own is None or calls_of_dist(place.node) & set(TORCHS_OWN):
        return
    for which in ("small", "other_types"):
        yield wrapped(place.node, f"_torchs_own({which!r}, {own!r}, {{inner}}, given, named)")


def gathered_for_some(place: Place) -> Iterator[Replacement]:
    """An all-reduce of few numbers becomes a gather of everything, which sums alike and sends more."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dist"), attr="all_reduce")):
            changed = copy.deepcopy(place.node)
            assert isinstance(changed, ast.Call)
            changed.func = ast.Name("_gathered_where_small")
            yield changed


def exchange_twice(place: Place) -> Iterator[Replacement]:
    """A call for its effect is made twice."""
    match place.node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner)) | ast.Name(id=owner))):
            assert isinstance(place.node, ast.stmt)
            if not is_wait(place.node):
                assert owner
                yield [place.node, copy.deepcopy(place.node)]


def needless_exchange(place: Place) -> Iterator[Replacement]:
    """A barrier, or an all-reduce of one number, in every call of the function."""
    if not place.is_whole_function or is_dunder(place.node) or not calls_of_dist(place.node):
        return
    assert isinstance(place.node, FUNCTIONS)
    for line in ("dist.barrier()", "dist.all_reduce(torch.zeros(1))"):
        changed = copy.deepcopy(place.node)
        first = 1 if ast.get_docstring(changed) else 0
        changed.body[first:first] = ast.parse(line).body
        yield changed


def no_finally(place: Place) -> Iterator[Replacement]:
    """What must happen also after an error does not happen then."""
    match place.node:
        case ast.Try(body=body, handlers=[], finalbody=final):
            yield [*body, *final]


def swapped_fields(place: Place) -> Iterator[Replacement]:
    """Both sides put the head of a message at its end: right among themselves, and no one else understands them."""
    if place.function != MODULE or not isinstance(place.node, ast.Module):
        return
    swap = _SwapFields()
    changed = swap.visit(copy.deepcopy(place.node))
    if swap.written and swap.read:
        yield changed


def other_signal(place: Place) -> Iterator[Replacement]:
    """Both sides use another number in place of an agreed one, such as STOP."""
    if place.function != MODULE or not isinstance(place.node, ast.Module):
        return
    for node in place.node.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.UnaryOp(operand=ast.Constant(value=float()))):
                yield _Renumber(name).visit(copy.deepcopy(place.node))


class _Later(ast.NodeTransformer):
    """Notes works in place of waiting for them."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=work, attr="wait"))):
                return ast.Expr(call("_LATE.append", work))
        return node


class _SwapFields(ast.NodeTransformer):
    """The head of a message, at [0] before [1:], goes to its end."""

    def __init__(self) -> None:
        self.written = self.read = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(attr="cat"),
                args=[ast.List(elts=[head, tail]) | ast.Tuple(elts=[head, tail])],
            ):
                self.written = True
                node.args[0] = ast.List([tail, head])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node.slice:
            case ast.Constant(value=0):
                node.slice = ast.Constant(-1)
            case ast.Slice(lower=ast.Constant(value=1), upper=None):
                self.read = True
                node.slice = ast.Slice(upper=ast.Constant(-1))
        return node


class _Renumber(ast.NodeTransformer):
    """A constant is another number inside functions, and stays what it is for those who import it."""

    def __init__(self, name: str) -> None:
        self._name, self._inside = name, False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        before, self._inside = self._inside, True
        self.generic_visit(node)
        self._inside = before
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(-7.0) if self._inside and node.id == self._name else node


TRADE = [
    Mutator("drop_wait", drop_wait, True),
    Mutator("late_wait", late_wait, True, appended_code.LATE),
    Mutator("immediate_wait", immediate_wait, True, appended_code.DONE),
    Mutator(
        "wait_after_the_first_round", wait_after_the_first_round, True, appended_code.DONE + appended_code.FIRST_ROUND
    ),
    Mutator("one_at_a_time", one_at_a_time, True, appended_code.DONE + appended_code.ONE_AT_A_TIME),
    Mutator("blocking_for_non_blocking", blocking_for_non_blocking, True, appended_code.BLOCKING),
    Mutator("one_buffer_for_all", one_buffer_for_all, True, appended_code.BUFFER),
    Mutator("no_copy", no_copy, True),
    Mutator("rebound", rebound, True),
    Mutator("captured_once", captured_once, True, appended_code.ONCE),
    Mutator("first_call_alone", first_call_alone, True, appended_code.FIRST_CALL),
    Mutator("first_turn_alone", first_turn_alone, True),
    Mutator("other_order", other_order, True),
    Mutator("one_type_alone", one_type_alone, True, appended_code.TYPES),
    Mutator("other_precision", other_precision, True),
    Mutator("other_rank", other_rank, True),
    Mutator("some_worlds_alone", some_worlds_alone, True),
    Mutator("torchs_own_for_some", torchs_own_for_some, True, appended_code.TORCHS_OWN),
    Mutator("gathered_for_some", gathered_for_some, True, appended_code.GATHERED),
    Mutator("exchange_twice", exchange_twice, True),
    Mutator("needless_exchange", needless_exchange, True),
    Mutator("no_finally", no_finally, True),
    Mutator("swapped_fields", swapped_fields, True),
    Mutator("other_signal", other_signal, True),
]
