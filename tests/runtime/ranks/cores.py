"""Ranks that tell on which cores they may run. Each leaves `cores-RANK.json`."""

from __future__ import annotations

import json
import os

from distsim.runtime.launch import rank_context

if __name__ == "__main__":
    with rank_context.entered() as context:
        cores = sorted(os.sched_getaffinity(0))
        (context.folder / f"cores-{context.rank}.json").write_text(json.dumps(cores))
