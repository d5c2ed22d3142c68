"""Policies: when updates are applied. One file each: its fields, and its rule without a clock."""

from distsim.policies.backup import Backup
from distsim.policies.rule import Decision, Rule
from distsim.policies.synchronous import Synchronous
from distsim.policies.table import PLANNED, POLICIES, Policy, read_policy, write_policy

__all__ = ["PLANNED", "POLICIES", "Backup", "Decision", "Policy", "Rule", "Synchronous", "read_policy", "write_policy"]
