"""A back end of torch.distributed that uses the testbed's switch as its network. Only ranks import this module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _DistributedBackendOptions
from torch.futures import Future

from distsim.testbed import torch_functions
from distsim.testbed.futures import PendingFuture
from distsim.testbed.switch_client import NetworkError, SwitchClient

NAME = "testbed"
OPERATIONS = {
    dist.ReduceOp.SUM: "sum", dist.ReduceOp.AVG: "avg", dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "min", dist.ReduceOp.MAX: "max", dist.ReduceOp.BAND: "band", dist.ReduceOp.BOR: "bor",
    dist.ReduceOp.BXOR: "bxor",
}  # fmt: skip
REFUSED = (  # what torch.distributed has for other back ends, or for its own use
    "all_gather_single_coalesced", "allgather_into_tensor_coalesced", "merge_remote_group",
    "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced", "split_group",
)  # fmt: skip
OF_NUMPY = {
    torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32,
    torch.int64, torch.float16, torch.float32, torch.float64,
}  # fmt: skip
OF_MEMORY = {"all_reduce", "reduce", "broadcast"}  # gloo copies the tensors of its other collectives
Tensors = Sequence[torch.Tensor]


def _as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


class Pending(dist._Work):
    """An operation that has begun.

    given: the tensors sent. Gloo reads them until the operation is over, so a change before that is an error here.
    travels: what of a tensor travels, or is filled, in its order.
    """

    def __init__(
        self, line: SwitchClient, key: int, into: Tensors = (), group: Sequence[int] = (),
        finish: Callable[[], None] | None = None, given: Tensors = (),
        travels: Callable[[torch.Tensor], torch.Tensor] = _as_it_is,
    ) -> None:  # fmt: skip
        super().__init__()
        self._line, self._key, self._into, self._group, self._finish = line, key, into, group, finish
        self._given = [(tensor, _array(tensor).tobytes()) for tensor in given]
        self._travels = travels
        self._over = False
        self._error: Exception | None = None
        self._source = -1
        self._future: PendingFuture | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Blocks this rank until the operation is over and its tensors hold the data received.

        Raises NetworkError if the operation failed, or if it takes more than `timeout` of virtual time.
        """
        seconds = timeout.total_seconds() if timeout else None  # torch's own default is a timeout of 0, for none
        if not self._over and not self._line.wait(self._key, self._take, seconds):
            raise NetworkError(f"Timed out waiting {1e3 * (seconds or 0.0):.0f}ms for the operation to complete")
        self._look_for_changes()
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the operation is over, and its tensors hold the data received. The question takes a little time."""
        if not self._over and not self._line.look(self._key, self._take):
            return False
        self._look_for_changes()
        return True

    def is_success(self) -> bool:
        """As `is_completed`, since a failed operation raises."""
        return self.is_completed()

    def result(self) -> list[torch.Tensor]:
        """The tensors received."""
        self.wait()
        return list(self._into)

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()

    def get_future(self) -> Future[list[torch.Tensor]]:
        """A future of the tensors received.

        Whoever waits for it in C++ is not seen to wait. So this call itself waits if torch's C++ calls it.
        """
        if self._future is None:
            self._future = PendingFuture(self.wait, self.is_completed)
            if self._over:
                self._complete(self._future)
            else:
                self._line.watch(self._key, self._take)
        if "get_future" not in sys._getframe(1).f_code.co_names:
            self.wait()
        return self._future

    def source_rank(self) -> int:
        """The source of the message, as a rank within the group."""
        return self._group.index(self._source)

    _source_rank = source_rank

    def _take(self, found: dict[str, Any]) -> None:
        """Takes the result of the operation, and runs what waits for its future."""
        self._over, self._source = True, found["source"]
        if self._into:  # which may be the tensors given
            self._look_for_changes()
        try:
            if found["error"]:
                raise NetworkError(found["error"])
            for tensor, array in zip(self._into, found["received"], strict=True):
                _fill(self._travels(tensor), array)
            if self._finish is not None:
                self._finish()
        except NetworkError as error:
            self._error = error
        if self._future is not None:
            self._complete(self._future)

    def _look_for_changes(self) -> None:
        """Looks for the last time whether this rank has changed what it gave."""
        if any(_array(tensor).tobytes() != before for tensor, before in self._given):
            self._error = NetworkError("a tensor was changed while it was sent: change it only after `wait`")
        self._given = []

    def _complete(self, future: PendingFuture) -> None:
        if self._error is None:
            future.set_result(list(self._into))
        else:
            future.set_exception(self._error)


class Group(dist.ProcessGroup):
    """A process group. torch.distributed calls these methods; ranks are positions in the group."""

    def __init__(self, line: SwitchClient, ranks: Sequence[int], position: int, name: str) -> None:
        super().__init__(position, len(ranks))
        self._line, self._ranks, self._label = line, list(ranks), name

    @property
    def group_name(self) -> str:
        """The name by which torch.distributed finds the group again."""
        return self._label

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """The name that `dist.get_backend` gives."""
        return NAME

    def shutdown(self) -> None:
        """Does nothing: the group holds no resource."""

    def send(self, tensors: Tensors, target: int, tag: int = 0) -> Pending:
        """Sends a tensor to one rank."""
        [tensor] = _side_by_side(tensors)
        key = self._line.post("send", to=self._member(target), tag=tag, group=self._label, data=_array(tensor))
        return Pending(self._line, key, given=tensors)

    def recv(self, tensors: Tensors, source: int, tag: int = 0) -> Pending:
        """Receives a tensor from one rank."""
        return self._receive(tensors, self._member(source), tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Pending:
        """Receives the tensor that any rank sent first."""
        return self._receive(tensors, None, tag)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Pending:
        """Every rank gets the reduction."""
        return self._join("all_reduce", tensors, into=tensors, operation=_operation(opts))

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Tensors, opts: Any) -> Pending:
        """The root gets the reduction."""
        into = tensors if self.rank() == opts.rootRank else []
        return self._join("reduce", tensors, into=into, root=opts.rootRank, operation=_operation(opts))

    def broadcast(self, tensors: Tensors, opts: Any) -> Pending:
        """Every rank gets the root's tensor."""
        given = tensors if self.rank() == opts.rootRank else []
        return self._join("broadcast", given, into=tensors, root=opts.rootRank)

    def allgather(self, into: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank gets the tensors of all ranks."""
        return self._join("all_gather", tensors, into=self._one_each(into[0]))

    def all_gather_single(self, into: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Pending:  # noqa: ARG002
        """As `allgather`, into one tensor."""
        return self._join("all_gather", [tensor], into=_pieces_like(tensor, into, self.size()))

    _allgather_base = all_gather_single

    def allgather_coalesced(self, into: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Pending:  # noqa: ARG002
        """As `allgather`, for several tensors at once: `into` has a list of tensors for each rank."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        came = [torch.empty_like(flat) for _ in into]

        def finish() -> None:
            for mine, whole in zip(into, came, strict=True):
                for tensor, part in zip(mine, torch.split(whole, [one.numel() for one in mine]), strict=True):
                    tensor.copy_(part.view(tensor.shape))

        return self._join("all_gather", [flat], into=came, finish=finish)

    def gather(self, into: Sequence[Tensors], tensors: Tensors, opts: Any) -> Pending:
        """The root gets the tensors of all ranks."""
        mine = self._one_each(into[0]) if self.rank() == opts.rootRank else []
        return self._join("gather", tensors, into=mine, root=opts.rootRank)

    def scatter(self, into: Tensors, tensors: Sequence[Tensors], opts: Any) -> Pending:
        """Every rank gets one of the root's tensors."""
        given = self._one_each(tensors[0]) if self.rank() == opts.rootRank else []
        return self._join("scatter", given, into=into, root=opts.rootRank)

    def reduce_scatter(self, into: Tensors, tensors: Sequence[Tensors], opts: Any) -> Pending:
        """Every rank gets one piece of the reduction."""
        return self._join("reduce_scatter", self._one_each(tensors[0]), into=into, operation=_operation(opts))

    def reduce_scatter_single(self, into: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Pending:
        """As `reduce_scatter`, from one tensor."""
        pieces = _pieces_like(into, tensor, self.size())
        return self._join("reduce_scatter", pieces, into=[into], operation=_operation(opts))

    _reduce_scatter_base = reduce_scatter_single

    def alltoall(self, into: Tensors, tensors: Tensors, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank sends one tensor to every rank."""
        return self._join("all_to_all", self._one_each(tensors), into=self._one_each(into))

    def all_to_all_single(
        self, into: torch.Tensor, tensor: torch.Tensor, into_sizes: list[int], sizes: list[int], opts: Any = None  # noqa: ARG002
    ) -> Pending:  # fmt: skip
        """As `alltoall`, from one tensor into one tensor."""
        return self.alltoall(_pieces(into, self.size(), into_sizes), _pieces(tensor, self.size(), sizes))

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank waits until all ranks have called it."""
        return self._join("barrier", [], into=[])

    def _member(self, position: int) -> int:
        """The rank at a position in the group."""
        if not hasattr(position, "__index__"):
            raise torch_functions.no_rank(position)
        if not 0 <= position < len(self._ranks):
            raise NetworkError(f"there is no rank {position} in a group of {len(self._ranks)}, whose ranks begin at 0")
        return self._ranks[position]

    def _one_each(self, tensors: Tensors) -> Tensors:
        if len(tensors) != self.size():
            raise NetworkError(f"{len(tensors)} tensors were given for {self.size()} ranks; give one for each rank")
        return tensors

    def _receive(self, tensors: Tensors, source: int | None, tag: int) -> Pending:
        [tensor] = _side_by_side(tensors)
        room = tensor.numel() * tensor.element_size()
        if source is None and not room:
            raise NetworkError("gloo cannot receive an empty tensor from any source: name the source, or send none")
        key = self._line.post("recv", source=source, tag=tag, group=self._label, bytes=room)
        return Pending(self._line, key, [tensor], self._ranks)

    def _join(
        self, kind: str, given: Tensors, into: Tensors, root: int = 0, operation: str = "",
        finish: Callable[[], None] | None = None,
    ) -> Pending:  # fmt: skip
        if operation:
            operation = _of_type(operation, given)
        travels = _memory if kind in OF_MEMORY else _as_it_is
        key = self._line.post(
            kind, group=self._label, ranks=self._ranks, root=root, operation=operation or "sum",
            data=[_array(travels(tensor)) for tensor in given],
        )  # fmt: skip
        return Pending(self._line, key, into, finish=finish, given=given, travels=travels)


def _refusal(name: str) -> Callable[..., None]:
    def refused(*_given: Any, **_options: Any) -> None:
        raise NotImplementedError(f"the testbed does not have {name} of torch.distributed's process groups")

    return refused


for _name in REFUSED:
    setattr(Group, _name, _refusal(_name))


def register(line: SwitchClient) -> None:
    """Registers the back end `testbed` with torch.distributed, connected to the switch by `line`."""

    def create(options: _DistributedBackendOptions, _of_backend: Any = None) -> Group:
        ranks = options.global_ranks_in_group or range(options.group_size)
        return Group(line, list(ranks), options.group_rank, options.group_id)

    torch_functions.replace()
    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])


def _operation(opts: Any) -> str:
    operation = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    for known, name in OPERATIONS.items():
        if operation == known:
            return name
    raise NetworkError(f"{operation} is no reduction of the testbed; it has {', '.join(OPERATIONS.values())}")


def _of_type(operation: str, given: Tensors) -> str:
    """The reduction for tensors of this type; numpy has no bfloat16."""
    kind = given[0].dtype
    if kind is torch.bfloat16:
        return f"{operation} of bfloat16"
    if kind not in OF_NUMPY:
        raise NetworkError(f"the testbed does not reduce tensors of {kind}")
    return operation


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as gloo takes it: as many numbers as it has, one after the other from where it begins in memory."""
    if tensor.is_contiguous():
        return tensor
    if tensor.storage_offset() + tensor.numel() > tensor.untyped_storage().nbytes() // tensor.element_size():
        raise NetworkError("gloo takes as many numbers as the tensor has, from where it begins, and memory has fewer")
    return tensor.detach().as_strided((tensor.numel(),), (1,)).view(tensor.shape)


def _side_by_side(tensors: Tensors) -> Tensors:
    if not all(tensor.is_contiguous() for tensor in tensors):
        raise NetworkError("input tensor has to be contiguous: its numbers must lie one after the other in memory")
    return tensors


def _array(tensor: torch.Tensor) -> Any:
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.uint16).numpy()
    return (plain if plain.dtype in OF_NUMPY else plain.view(-1).view(torch.uint8)).numpy()


def _fill(tensor: torch.Tensor, array: Any) -> None:
    """Copies the bytes as gloo does: a message that is smaller than the tensor fills its first part."""
    received = torch.from_numpy(array)
    with torch.no_grad():
        if received.dtype == tensor.dtype and received.shape == tensor.shape:
            tensor.copy_(received)
            return
        if not received.numel():
            return
        if not tensor.is_contiguous():
            raise NetworkError("a tensor to receive into must be contiguous where shapes differ")
        target = tensor.detach().view(-1).view(torch.uint8)
        data = received.contiguous().view(-1).view(torch.uint8)
        if len(data) > len(target):
            raise NetworkError(f"{len(data)} bytes came where there is room for {len(target)}")
        target[: len(data)] = data


def _pieces_like(piece: torch.Tensor, whole: torch.Tensor, count: int) -> list[torch.Tensor]:
    """The rows of `whole`, cut into pieces of the shape of `piece`. Gloo takes no other shape."""
    rows = [count * piece.shape[0], *piece.shape[1:]] if piece.dim() else [count]
    if list(whole.shape) != rows:
        raise NetworkError(f"a tensor of shape {list(whole.shape)} is not {count} tensors of shape {list(piece.shape)}")
    return list(whole.view(count, *piece.shape))


def _pieces(tensor: torch.Tensor, count: int, sizes: Sequence[int] = ()) -> list[torch.Tensor]:
    if sizes:
        return list(torch.split(tensor, list(sizes)))
    if tensor.shape[0] % count:
        raise NetworkError(f"{tensor.shape[0]} rows cannot be cut into {count} pieces of one size")
    return list(tensor.view(count, -1, *tensor.shape[1:])) if tensor.dim() else [tensor]
