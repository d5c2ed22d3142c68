"""The fluid model of a network: a transfer waits the latency, and then shares links max-min fairly.

The model is SimGrid's (Casanova et al. 2014) in its plain form; max-min fairness is Bertsekas and Gallager, Data
Networks, section 6.5.2.

fairness    the rates of some flows, by progressive filling
link        one link: the flows that cross it, and the virtual clock of those that it limits
network     flows on a SimPy clock, for the stories
offline_flows    the ends of flows that are all known in advance, without a clock; compiled where numba is installed
"""

from distsim.network.fairness import max_min_rates
from distsim.network.link import OVER, Flow, Route
from distsim.network.network import Network, after_all
from distsim.network.offline_flows import flow_ends

__all__ = ["OVER", "Flow", "Network", "Route", "after_all", "flow_ends", "max_min_rates"]
