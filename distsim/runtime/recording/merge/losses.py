"""The losses that a model's steps had become the losses of the updates that were made of them."""

from __future__ import annotations

from typing import Any

from distsim.runtime.recording.recorder import Record
from distsim.trace import Trace


def losses(trace: Trace, workers: list[Record]) -> dict[str, Any]:
    """The loss of each update, the mean over the batches whose gradients it was made of; nothing without a model."""
    of_step = [{int(step): loss for step, loss in record.rows("losses")} for record in workers]
    rows = trace.contributions.where(trace.contributions.applied)
    if not any(of_step) or not len(rows):
        return {}
    rows = rows.where(rows.server == rows.server.min())  # several servers made it of the same ones
    batches: dict[int, list[float]] = {}
    for version, worker, step in zip(rows.version.tolist(), rows.worker.tolist(), rows.step.tolist(), strict=True):
        batches.setdefault(version, []).append(of_step[worker][step])
    return {"losses": [sum(batch) / len(batch) for _, batch in sorted(batches.items())]}
