"""Policies decide when updates are applied. Each policy has its own file, with its fields and its rule or plan."""

from distsim.policies.asynchronous import Asynchronous
from distsim.policies.backup import Backup
from distsim.policies.ddp import Ddp
from distsim.policies.flexrr import FlexRR
from distsim.policies.local_sgd import LocalSgd
from distsim.policies.mesh import Mesh
from distsim.policies.pipeline import Pipeline
from distsim.policies.policy import Policy, Programmed, WithServer
from distsim.policies.rule import Decision, Rule
from distsim.policies.sharded import Sharded
from distsim.policies.stale_synchronous import StaleSynchronous
from distsim.policies.step_program import Computation, Exchange, StepProgram
from distsim.policies.synchronous import Synchronous
from distsim.policies.table import POLICIES, read_policy, smallest_table, whole_policy, write_policy
from distsim.policies.tensor import Tensor

__all__ = [
    "POLICIES",
    "Asynchronous",
    "Backup",
    "Computation",
    "Ddp",
    "Decision",
    "Exchange",
    "FlexRR",
    "LocalSgd",
    "Mesh",
    "Pipeline",
    "Policy",
    "Programmed",
    "Rule",
    "Sharded",
    "StaleSynchronous",
    "StepProgram",
    "Synchronous",
    "Tensor",
    "WithServer",
    "read_policy",
    "smallest_table",
    "whole_policy",
    "write_policy",
]
