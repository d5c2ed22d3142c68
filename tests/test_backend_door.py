"""Only runtime's back end speaks to torch.distributed. Each other module that names it is listed with its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import distsim

PACKAGE = Path(distsim.__file__).parent
PRIMITIVES = "torch.distributed"
NAME = re.compile(r"torch(\.distributed|\._C\._distributed)[\w.]*")
# What a module may take, and why. An entry ends where the name that is imported ends: "torch.distributed" alone is all.
ALLOWED = {
    "runtime/transport/backend.py": {PRIMITIVES, "torch._C._distributed_c10d"},  # the one door
    # An engine of the library, which calls the primitives by itself: it is what the real run shows.
    "runtime/ranks/pipeline.py": {"torch.distributed.pipelining", "torch.distributed.P2POp"},
    # torchrun starts processes; it carries no bytes between them.
    "runtime/launch/fork_client.py": {
        "torch.distributed.run",
        "torch.distributed.elastic.multiprocessing.subprocess_handler",
    },
    "runtime/launch/torchrun_agent.py": {"torch.distributed.run", "torch.distributed.elastic"},
    "course/program.py": {"torch.distributed.run"},
    # Scripts as users write them, and what Horovod's library does for one.
    "frameworks/averaging.py": {PRIMITIVES},
    "frameworks/bare.py": {PRIMITIVES},
    "frameworks/horovod_style.py": {PRIMITIVES},
    # A back end of its own: the testbed's network, which student code reaches through torch.distributed.
    "testbed/process_group.py": {PRIMITIVES},
    "testbed/torch_functions.py": {PRIMITIVES},
    "testbed/rank_main.py": {PRIMITIVES},
    "testbed/rendezvous.py": {PRIMITIVES, "torch._C._distributed_c10d"},
    "testbed/rank_conversation.py": {PRIMITIVES},  # the other side of a student's messages on that network
}


def named(source: str) -> set[str]:
    """Every name below torch.distributed that a module imports, reaches as an attribute, or gives as a text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return {name for name in found if NAME.fullmatch(name)}


def broken(module: str, source: str) -> set[str]:
    """What a module names without leave."""
    allowed = ALLOWED.get(module, set())
    return {name for name in named(source) if not any(f"{name}.".startswith(f"{door}.") for door in allowed)}


def test_no_module_but_the_back_end_calls_primitives_of_torch_distributed() -> None:
    modules = {str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    assert {module: names for module, source in modules.items() if (names := broken(module, source))} == {}
    unused = {
        module: doors - {door for door in doors if any(f"{name}.".startswith(f"{door}.") for name in names)}
        for module, doors in ALLOWED.items()
        for names in [named(modules[module])]
    }
    assert not any(unused.values()), unused


@pytest.mark.parametrize(
    "source",
    [
        "import torch.distributed as dist",
        "from torch import distributed",
        "from torch.distributed import send",
        "from torch.distributed.distributed_c10d import Store",
        "from torch._C._distributed_c10d import FileStore",
        "import torch\ntorch.distributed.barrier()",
        "def later():\n    import torch.distributed",
        "import_module('torch.distributed')",
    ],
)
def test_every_way_to_the_primitives_is_seen(source: str) -> None:
    assert broken("runtime/ranks/peers.py", source)
    assert broken("runtime/ranks/pipeline.py", source)
