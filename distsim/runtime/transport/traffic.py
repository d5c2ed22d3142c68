"""One rank's own count of the messages that it hands to the back end."""

from __future__ import annotations

import torch

from distsim.runtime.recording.recorder import Recorder


class Traffic:
    """Counts a rank's messages and bytes. `merge.peers` compares the count with the trace of all ranks."""

    def __init__(self, recorder: Recorder) -> None:
        self._counts = recorder.facts.setdefault(
            "traffic", {"sent_messages": 0, "sent_bytes": 0, "received_messages": 0, "received_bytes": 0}
        )

    def sent(self, tensor: torch.Tensor) -> None:
        """Counts a message to another rank."""
        self._counts["sent_messages"] += 1
        self._counts["sent_bytes"] += tensor.nbytes

    def received(self, tensor: torch.Tensor) -> None:
        """Counts a message from another rank."""
        self._counts["received_messages"] += 1
        self._counts["received_bytes"] += tensor.nbytes
