"""Runs unknown code as ranks of torch.distributed whose network is a switch on a virtual clock.

    checks -> Testbed.run -> host -> sandbox -> ranks
                  |                               |
                switch  <---- frames ----------- seat

The switch stands in the calling process and carries every message, so what it has seen cannot be forged by what a rank
prints, patches or logs. Virtual time goes on only while every rank is blocked: a slow or busy machine changes nothing.
"""

from __future__ import annotations

from distsim.testbed.log import Collective as Collective
from distsim.testbed.log import Log as Log
from distsim.testbed.log import Message as Message
from distsim.testbed.run import Testbed as Testbed
from distsim.testbed.watch import Failure as Failure
from distsim.testbed.watch import Run as Run

__all__ = ["Collective", "Failure", "Log", "Message", "Run", "Testbed"]
