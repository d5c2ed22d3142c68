"""The reference engine: a run as SimPy processes, one per worker and one per server.

peers       compute -> all-reduce (synchronous, local SGD; through a server: receive -> apply -> answer)
ddp         forward -> backward, while buckets are all-reduced
program     compute -> exchange, each in queues (sharded and tensor parallel training, meshes)
pipeline    receive -> compute -> send, for each micro-batch, then flush
server      compute -> push -> wait -> pull, and receive -> decide -> apply -> answer
flexrr      as server, but workers do pieces of each other's steps while they wait
Each story is in the module of its name. `runtime/` runs the same story with real processes, in the same order.
"""

from __future__ import annotations

from copy import deepcopy

from distsim import trace_size
from distsim.collectives import Schedule
from distsim.cores import Cores
from distsim.engine.ddp import DdpStory
from distsim.engine.flexrr import FlexRRStory
from distsim.engine.peers import PeersStory
from distsim.engine.pipeline import PipelineStory
from distsim.engine.program import ProgramStory
from distsim.engine.server import ServerStory
from distsim.policies import Ddp, FlexRR, Pipeline, Programmed, Rule, WithServer
from distsim.scenario import Scenario
from distsim.trace import Trace


def run(
    scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None, cores: Cores | None = None,
    schedule: Schedule | None = None,
) -> Trace:  # fmt: skip
    """Simulates `scenario`. apply_seconds: a server's own work for each update. rule: replaces the policy's rule.

    cores: those that the ranks of one machine share. Only workers among peers share them. schedule: replaces that of
    the all-reduces, where workers sum after their steps.
    """
    policy = scenario.policy
    trace_size.check_story(scenario)
    if scenario.servers and isinstance(policy, WithServer):
        # Servers share nothing, so each server has its own rule.
        fresh = rule or policy.rule(scenario.cluster.workers)
        rules = [fresh, *(deepcopy(fresh) for _ in scenario.servers[1:])]
        story = FlexRRStory if isinstance(policy, FlexRR) else ServerStory
        return story(scenario, rules, apply_seconds).run()
    if isinstance(policy, Ddp):
        return DdpStory(scenario, cores).run()
    if isinstance(policy, Programmed):
        return ProgramStory(scenario, cores).run()
    if isinstance(policy, Pipeline):
        return PipelineStory(scenario).run()
    return PeersStory(scenario, apply_seconds, cores, schedule).run()
