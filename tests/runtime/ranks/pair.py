"""Two machines in one: each command runs in a network namespace of its own, and a veth pair joins the two.

    python pair.py COMMAND0 COMMAND1        as JSON lists, with {address} for the first machine's

The namespaces have no names, and fall with this process and its children. It ends with 77 and the reason where it may
not make them, else with the greater of the two exit codes; what the commands print are lines of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys

from distsim.errors import InputError
from distsim.runtime.emulation import namespaces
from distsim.runtime.emulation.iproute import Iproute, refusal

NO_RIGHT = 77
ADDRESSES = ("10.1.0.1", "10.1.0.2")


def joined() -> tuple[int, int]:
    """Both namespaces, held open; this process is in the second."""
    tools = Iproute.found()
    try:
        namespaces.leave_the_machines()
        first = namespaces.here()
        tools.ip("link set lo up")
        second = namespaces.fresh()
    except OSError as error:
        raise refusal(f"needs the right to make network namespaces ({error.strerror})") from None
    tools.ip(
        "link set lo up",
        f"link add nic type veth peer name nic netns {namespaces.path(first)}",
        f"address add {ADDRESSES[1]}/24 dev nic",
        "link set nic up",
    )
    namespaces.enter(first)
    tools.ip(f"address add {ADDRESSES[0]}/24 dev nic", "link set nic up")
    namespaces.enter(second)
    return first, second


def main(commands: list[list[str]]) -> int:
    try:
        pair = joined()
    except InputError as error:
        print(error)
        return NO_RIGHT
    running = []
    for namespace, command in zip(pair, commands, strict=True):
        namespaces.enter(namespace)
        text = [word.format(address=ADDRESSES[0]) for word in command]
        running.append(subprocess.Popen(text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    codes = []
    for process in running:
        out, errors = process.communicate()
        codes.append(process.returncode)
        print(json.dumps({"code": process.returncode, "out": out, "errors": errors}))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main([json.loads(text) for text in sys.argv[1:3]]))
