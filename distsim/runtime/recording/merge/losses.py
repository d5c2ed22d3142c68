"""The loss of each update, from the losses of the steps whose gradients made it."""

from __future__ import annotations

from typing import Any

from distsim.runtime.recording.recorder import Record
from distsim.trace import Trace


def losses(trace: Trace, workers: list[Record]) -> dict[str, Any]:
    """The loss of each update: the mean over the batches whose gradients made it. Empty without a model."""
    of_step = [{int(step): loss for step, loss in record.rows("losses")} for record in workers]
    rows = trace.contributions.where(trace.contributions.applied)
    if not any(of_step) or not len(rows):
        return {}
    rows = rows.where(rows.server == rows.server.min())  # all servers used the same gradients
    batches: dict[int, list[float]] = {}
    for version, worker, step in zip(rows.version.tolist(), rows.worker.tolist(), rows.step.tolist(), strict=True):
        batches.setdefault(version, []).append(of_step[worker][step])
    return {"losses": [sum(batch) / len(batch) for _, batch in sorted(batches.items())]}
