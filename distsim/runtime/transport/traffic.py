"""What one rank sends and receives itself, counted where it is handed to the backend."""

from __future__ import annotations

import torch

from distsim.runtime.recording.recorder import Recorder


class Traffic:
    """A rank's own count of messages and bytes; `merge.peers` compares it with the trace that all ranks make."""

    def __init__(self, recorder: Recorder) -> None:
        self._counts = recorder.facts.setdefault(
            "traffic", {"sent_messages": 0, "sent_bytes": 0, "received_messages": 0, "received_bytes": 0}
        )

    def sent(self, tensor: torch.Tensor) -> None:
        """A message for another rank."""
        self._counts["sent_messages"] += 1
        self._counts["sent_bytes"] += tensor.nbytes

    def received(self, tensor: torch.Tensor) -> None:
        """A message that has come from another rank."""
        self._counts["received_messages"] += 1
        self._counts["received_bytes"] += tensor.nbytes
