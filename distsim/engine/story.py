"""The reference engine: a run told as SimPy processes, one per worker and one per server.

peers       compute -> all-reduce
server      compute -> push -> wait -> pull, and receive -> decide -> apply -> answer
Each story stands in a module of its name, and `runtime/` tells it with real processes, in the same order.
"""

from __future__ import annotations

from distsim.engine.peers import PeersStory
from distsim.engine.server import ServerStory
from distsim.policies import Rule, Synchronous, WithServer
from distsim.scenario import Scenario
from distsim.trace import Trace


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: a server's own work for each update. rule: in place of the policy's."""
    policy = scenario.policy
    if scenario.servers and isinstance(policy, WithServer):
        rules = [rule or policy.rule(scenario.cluster.workers) for _ in scenario.servers]
        return ServerStory(scenario, rules, apply_seconds).run()
    assert isinstance(policy, Synchronous)
    return PeersStory(scenario).run()
