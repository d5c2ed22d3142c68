"""An emulated cluster on one Linux machine: the scenario's links for the ranks of a real run.

`plan` says what is to be built, `shaping` with which numbers, `namespaces` and `network` build it in the kernel, and
`order` is what the launching process, torchrun's agent and the ranks say to each other about it. `trial` tells before
a run whether there could be one.

torchrun's agent leaves the machine's network for a namespace of its own, the switch, and opens one more for each
host. Each rank enters its host's before it does anything else. None of them has a name: the kernel removes them
with the last process that sits in one or holds one open, whatever that process died of. So nothing has to be
cleaned up, two emulated clusters know nothing of each other, and the machine's own network is never touched.
"""
