"""The fluid model of a network: a transfer waits the latency, and then shares links max-min fairly.

The model is SimGrid's (Casanova et al. 2014) in its plain form; max-min fairness is Bertsekas and Gallager, Data
Networks, section 6.5.2.

fairness    the rates of some flows, by progressive filling
link        one link: the flows that cross it, and the virtual clock of those that it limits
network     flows on a SimPy clock, for the stories
flow_columns    the flows of a network while they are many: in columns, and only rates that can change are solved again
"""

from distsim.network.fairness import max_min_rates
from distsim.network.link import OVER, Flow, Route
from distsim.network.network import Network, after_all

__all__ = ["OVER", "Flow", "Network", "Route", "after_all", "max_min_rates"]
