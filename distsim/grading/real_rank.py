"""The entry point of each rank of `distsim lab run`; torchrun starts it as `python -m distsim.grading.real_rank`."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from distsim.errors import InputError
from distsim.files import write_text
from distsim.grading.real import FUNCTION, result_file
from distsim.runtime.launch import rank_context

if TYPE_CHECKING:
    from distsim.runtime.launch.rank_context import RankContext


def main() -> None:
    """Runs one rank. The context is entered first, so that a hang or an error in `import torch` is reported too."""
    with rank_context.entered() as context:
        context.slot.doing("import torch")
        from distsim.runtime.transport import backend

        context.slot.doing("init_process_group", waiting=True)
        patience = timedelta(seconds=2 * context.job["deadline_seconds"])
        backend.join(backend.meet(patience), patience, gpus=_takes_gpu())
        _run(context)
        context.slot.doing("the barrier at the end", waiting=True)
        backend.barrier()
        backend.leave()


def _takes_gpu() -> bool:
    """Selects a GPU for this rank if torch has NCCL and every rank can have a GPU. Returns whether it did."""
    import torch

    from distsim.runtime.transport import backend

    ranks, rank = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    if not (torch.cuda.is_available() and backend.has_nccl() and torch.cuda.device_count() >= ranks):
        return False
    torch.cuda.set_device(rank)
    return True


def _run(context: RankContext) -> None:
    """Calls `real` with the student's module and writes the result to a file."""
    context.slot.doing("import of tasks.py")
    ranks = _module("ranks", Path(context.job["ranks_file"]))  # first, as on the testbed: tasks.py may need its modules
    tasks = _module("tasks", Path(context.job["tasks_file"]))
    context.slot.doing("your code")
    found = getattr(ranks, FUNCTION)(tasks, **context.job["arguments"])
    try:
        text = json.dumps(found)
    except (TypeError, ValueError) as error:
        cure = "return a dict of numbers and texts"
        raise InputError.of(f"result of {FUNCTION}", type(found).__name__, f"is no JSON ({error})", cure) from None
    write_text(result_file(context.folder, context.rank), text)


def _module(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
