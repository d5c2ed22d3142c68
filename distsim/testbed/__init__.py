"""Runs unknown code as ranks of torch.distributed whose network is a switch on a virtual clock.

    checks -> Testbed.run -> fork_server -> sandbox -> ranks
                  |                                      |
                switch  <------- frames ------------- rank_main

The switch lives in the calling process and carries every message. A rank cannot forge what the switch has seen,
whatever the rank prints, patches or logs. Virtual time advances only while every rank is blocked, so a slow or busy
machine changes nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distsim.testbed.log import Collective as Collective
    from distsim.testbed.log import Log as Log
    from distsim.testbed.log import Message as Message
    from distsim.testbed.log import Unwaited as Unwaited
    from distsim.testbed.run import Testbed as Testbed
    from distsim.testbed.run_monitor import Failure as Failure
    from distsim.testbed.run_monitor import Run as Run

HOMES = {
    "Collective": "log",
    "Failure": "run_monitor",
    "Log": "log",
    "Message": "log",
    "Run": "run_monitor",
    "Testbed": "run",
    "Unwaited": "log",
}
__all__ = sorted(HOMES)


def __getattr__(name: str) -> object:
    """Loads a public name at its first use: the fork server imports this package and needs none of them."""
    if name not in HOMES:
        raise AttributeError(f"module 'distsim.testbed' has no attribute {name!r}")
    return getattr(import_module(f"distsim.testbed.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
