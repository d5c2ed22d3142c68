"""An emulated cluster on one Linux machine: the scenario's links for the ranks of a real run.

`plan` describes the cluster, and `shaping` computes its numbers. `namespaces` and `network` build the cluster in the
kernel through `iproute`. `coordination` holds the files by which the launching process, torchrun's agent and the ranks
agree on the cluster. `trial` checks before a run that the machine can emulate it. `report` describes the result.

torchrun's agent leaves the machine's network for a network namespace of its own, the switch, and opens another
namespace for each host. Each rank enters the namespace of its host before anything else. The namespaces have no names:
the kernel removes a namespace when no process is in the namespace or holds it open. So nothing has to be cleaned up,
emulated clusters do not affect each other, and the machine's own network is not touched.
"""
