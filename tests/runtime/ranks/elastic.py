"""A rank of an elastic run, under torchrun: it goes on from the checkpoint, with the machines that are left.

    torchrun ... elastic.py FOLDER

Each step averages a gradient over the ranks. The batch stays the same: each rank takes its share of BATCH samples.
After every fifth step rank 0 writes a checkpoint to a temporary name, and renames it. Each step adds a line to
FOLDER/steps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

STEPS, BATCH, RATE, EVERY = 40, 32, 0.1, 5
STEP_SECONDS = 0.1
PATIENCE = timedelta(seconds=4)  # for a message of a rank that may be dead


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    impatient = dist.new_group(timeout=PATIENCE)
    saved = folder / "checkpoint.json"
    step, weight = json.loads(saved.read_text("ascii")) if saved.exists() else (0, 0.0)
    own = BATCH // size
    while step < STEPS:
        time.sleep(STEP_SECONDS)
        inputs = torch.randn(BATCH, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        mine = inputs[rank * own : (rank + 1) * own]
        gradient = ((weight * mine - 2.0 * mine) * mine).mean()
        dist.all_reduce(gradient, group=impatient)
        weight -= RATE * float(gradient) / size
        step += 1
        if rank == 0:
            with (folder / "steps").open("a", encoding="ascii") as file:
                told = {"step": step, "ranks": size, "samples of each": own, "weight": weight, "at": time.monotonic()}
                file.write(json.dumps(told) + "\n")
            if step % EVERY == 0:
                part = saved.with_suffix(".part")
                part.write_text(json.dumps((step, weight)), "ascii")
                os.replace(part, saved)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
