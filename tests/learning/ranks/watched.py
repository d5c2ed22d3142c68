"""The real rank of DDP runs, which also keeps the parameters and the mean gradient that each update was made of.

DISTSIM_TEST_WATCHED = {"folder": where each rank leaves `NAME-RANK.npz`, "samples": how many there are}. A scenario
whose name ends in "float64" runs in double precision.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from distsim.runtime.launch import rank_context


def watch(rank: int, folder: Path, samples: int) -> None:
    import numpy as np
    import torch

    from distsim.learning.batches import Batches
    from distsim.learning.problems import Data, Problem
    from distsim.runtime.ranks import ddp

    class Model(ddp.PacedModel):
        def __init__(self, scenario: Any, *arguments: Any) -> None:
            super().__init__(scenario, *arguments)
            self.to(torch.float64 if scenario.name.endswith("float64") else torch.float32)
            data, like = self._problem.training, next(self.parameters())
            self._problem = Problem(
                self.model, Data(data.inputs[:samples].to(like), data.targets[:samples]), self._problem.loss
            )
            self._batches = Batches(samples, self._batches.workers, self._batches.batch, self._batches.seed)

    def learn(self: Any, *, last: bool) -> None:
        kept = vars(self).setdefault("kept", {"parameters": [], "gradients": []})
        parameters = list(self._layers.parameters())
        kept["parameters"].append(torch.cat([one.detach().flatten() for one in parameters]).numpy())
        kept["gradients"].append(torch.cat([one.grad.flatten() for one in parameters]).numpy())
        true_learn(self, last=last)
        if last:
            columns = {key: np.array(rows) for key, rows in kept.items()}
            np.savez(folder / f"{self._scenario.name}-{rank}.npz", **columns)

    true_learn = ddp.DdpWorker._learn
    ddp.PacedModel = Model  # type: ignore[misc]
    ddp.DdpWorker._learn = learn  # type: ignore[method-assign]


if __name__ == "__main__":
    with rank_context.entered() as context:
        context.slot.doing("import torch")
        from distsim.runtime.ranks import session

        told = json.loads(os.environ["DISTSIM_TEST_WATCHED"])
        watch(context.rank, Path(told["folder"]), told["samples"])
        session.run(context)
