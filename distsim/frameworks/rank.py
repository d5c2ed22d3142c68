"""One rank of a run: `torchrun -m distsim.frameworks.rank WAY UPDATES FOLDER`. It writes FOLDER/RANK.json."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import torch

from distsim.files import write_text
from distsim.frameworks.task import Record


def main(way: str, updates: str, folder: str) -> None:
    """Trains, then writes what was noted."""
    torch.set_num_threads(1)
    record = Record()
    import_module(f"distsim.frameworks.{way}").train(int(updates), record)
    write_text(Path(folder) / f"{os.environ['RANK']}.json", json.dumps(asdict(record)))


if __name__ == "__main__":
    main(*sys.argv[1:])
