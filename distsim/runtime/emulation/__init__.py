"""An emulated cluster on one Linux machine: the scenario's links for the ranks of a real run.

`plan` says what to build, and `shaping` with which numbers. `namespaces` and `network` build it in the kernel through
`iproute`. `coordination` holds the files by which the launching process, torchrun's agent and the ranks agree on it.
`trial` finds out before a run whether the machine can emulate a cluster, and `report` describes what was emulated.

torchrun's agent leaves the machine's network for a network namespace of its own, the switch, and opens another
namespace for each host. Each rank enters the namespace of its host before anything else. The namespaces have no names:
the kernel removes a namespace when the last process in it, or that holds it open, is gone, for whatever reason. So
nothing has to be cleaned up, emulated clusters do not affect each other, and the machine's own network is not touched.
"""
