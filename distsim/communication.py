"""How bytes travel: the `[communication]` table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from distsim.collectives import ALL_REDUCES, COLLECTIVES, Collective
from distsim.validated_table import ValidatedTable

if TYPE_CHECKING:
    AllReduceKind = str
else:
    AllReduceKind = Literal[tuple(ALL_REDUCES)]
Sends = Literal["rendezvous", "eager"]
Receive = Literal["concurrent", "fifo"]


class Communication(ValidatedTable):
    """The `[communication]` table.

    sends: "rendezvous": a transfer starts when both ends are ready; "eager": as soon as the sender is.
    receive: a server takes several pushes at once ("concurrent"), or one after the other ("fifo"). None: as the policy
    prefers.
    implementation: a real run calls the backend's own all-reduce, or runs our schedule over point-to-point sends.

    >>> Communication(kind="ring").sends
    'rendezvous'
    """

    kind: AllReduceKind = Field(examples=["ring"])
    servers: Annotated[int, Field(ge=1, le=10**6)] = 1
    colocated: bool = False
    sends: Sends = "rendezvous"
    receive: Receive | None = None
    implementation: Literal["backend", "schedule"] = "backend"

    def collective(self, exchange: str = "all_reduce") -> Collective:
        """The row of the table for an exchange: an all-reduce is of this `kind`.

        >>> Communication(kind="tree").collective().kind, Communication(kind="ring").collective("all_gather").kind
        ('tree', 'all_gather')
        """
        return ALL_REDUCES[self.kind] if exchange == "all_reduce" else COLLECTIVES[exchange]
