"""Runs unknown code as ranks of torch.distributed whose network is a switch on a virtual clock.

    checks -> Testbed.run -> fork_server -> sandbox -> ranks
                  |                                      |
                switch  <------- frames ------------- rank_main

The switch lives in the calling process and carries every message. A rank cannot forge what the switch has seen,
whatever the rank prints, patches or logs. Virtual time advances only while every rank is blocked, so a slow or busy
machine changes nothing.
"""

from __future__ import annotations

from distsim.testbed.log import Collective as Collective
from distsim.testbed.log import Log as Log
from distsim.testbed.log import Message as Message
from distsim.testbed.log import Unwaited as Unwaited
from distsim.testbed.run import Testbed as Testbed
from distsim.testbed.run_monitor import Failure as Failure
from distsim.testbed.run_monitor import Run as Run

__all__ = ["Collective", "Failure", "Log", "Message", "Run", "Testbed", "Unwaited"]
