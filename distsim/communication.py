"""How bytes travel: the `[communication]` table."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from distsim.description import Description

Collective = Literal["ring", "tree", "halving_doubling", "parameter_server", "hierarchical"]
Sends = Literal["rendezvous", "eager"]
Receive = Literal["concurrent", "fifo"]


class Communication(Description):
    """The `[communication]` table.

    sends: "rendezvous": a transfer starts when both ends are ready; "eager": as soon as the sender is.
    receive: does a server take several pushes at once, or one after the other? None: the policy's own way.
    implementation: in a real run, the backend's own all-reduce or our schedule over point-to-point sends.

    >>> Communication(kind="ring").sends
    'rendezvous'
    """

    kind: Collective = Field(examples=["ring"])
    servers: Annotated[int, Field(ge=1, le=10**6)] = 1
    colocated: bool = False
    sends: Sends = "rendezvous"
    receive: Receive | None = None
    implementation: Literal["backend", "schedule"] = "backend"
