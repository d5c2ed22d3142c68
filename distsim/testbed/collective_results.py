"""The result of each collective for its members, computed by the switch. Ranks are positions within the group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Given = Sequence[Sequence[Array]]  # the tensors that each member gave

OPERATIONS: dict[str, Callable[[Sequence[Array]], Array]] = {
    "sum": lambda parts: _same_type(np.add.reduce(list(parts)), parts),
    "avg": lambda parts: _same_type(np.add.reduce(list(parts)) / len(parts), parts),
    "product": lambda parts: _same_type(np.multiply.reduce(list(parts)), parts),
    "min": lambda parts: _same_type(np.minimum.reduce(list(parts)), parts),
    "max": lambda parts: _same_type(np.maximum.reduce(list(parts)), parts),
    "band": lambda parts: _same_type(np.bitwise_and.reduce(list(parts)), parts),
    "bor": lambda parts: _same_type(np.bitwise_or.reduce(list(parts)), parts),
    "bxor": lambda parts: _same_type(np.bitwise_xor.reduce(list(parts)), parts),
}


def _of_bfloat16(combine: Callable[[Sequence[Array]], Array]) -> Callable[[Sequence[Array]], Array]:
    """The reduction of arrays of uint16 whose bits are those of bfloat16, the upper half of float32."""

    def combined(parts: Sequence[Array]) -> Array:
        bits = combine([(part.astype(np.uint32) << 16).view(np.float32) for part in parts]).view(np.uint32)
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)  # to the nearest, ties to even
        return np.asarray(np.where(np.isnan(bits.view(np.float32)), bits | 0x400000, rounded) >> 16, dtype=np.uint16)

    return combined


for _name in ("sum", "avg", "product", "min", "max"):
    OPERATIONS[f"{_name} of bfloat16"] = _of_bfloat16(OPERATIONS[_name])


def _same_type(array: Array, parts: Sequence[Array]) -> Array:
    """Makes an array also of a single number, which numpy returns as a scalar."""
    return np.asarray(array, dtype=parts[0].dtype)


def outcome(kind: str, given: Given, root: int, operation: str) -> list[list[Array]]:
    """The tensors that each member receives. Raises ValueError if the members' tensors do not fit together.

    >>> [[total], _] = outcome("all_reduce", [[np.ones(2)], [np.ones(2)]], 0, "sum")
    >>> total.tolist()
    [2.0, 2.0]
    """
    size = len(given)
    if kind == "barrier":
        return [[] for _ in given]
    if kind == "broadcast":
        return [list(given[root]) for _ in given]
    if kind == "scatter":
        _check_count(kind, given[root], size)
        return [[part] for part in given[root]]
    if kind == "all_to_all":
        for tensors in given:
            _check_count(kind, tensors, size)
        return [[given[source][target] for source in range(size)] for target in range(size)]
    _check_alike(kind, given)
    if kind == "gather":
        return [[tensors[0] for tensors in given] if member == root else [] for member in range(size)]
    if kind == "all_gather":
        return [[tensors[0] for tensors in given] for _ in given]
    combine = OPERATIONS[operation]
    with np.errstate(all="ignore"):  # ranks may send infinities
        totals = [combine(column) for column in zip(*given, strict=True)]
    if kind == "all_reduce":
        return [list(totals) for _ in given]
    if kind == "reduce":
        return [totals if member == root else [] for member in range(size)]
    if kind == "reduce_scatter":
        _check_count(kind, totals, size)
        return [[total] for total in totals]
    raise ValueError(f"{kind} is no collective that the switch knows")


def _check_count(kind: str, tensors: Sequence[Array], size: int) -> None:
    if len(tensors) != size:
        raise ValueError(f"{kind} needs a tensor for each of {size} ranks, and was given {len(tensors)}")


def _check_alike(kind: str, given: Given) -> None:
    shapes = {tuple((array.shape, array.dtype.str) for array in tensors) for tensors in given}
    if len(shapes) > 1:
        told = " and ".join(sorted(str([list(shape) for shape, _ in tensors]) for tensors in shapes))
        raise ValueError(f"{kind}: ranks gave tensors of different shapes or types: {told}")
