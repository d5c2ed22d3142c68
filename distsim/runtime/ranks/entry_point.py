"""The entry point of each rank; torchrun starts it as `python -m distsim.runtime.ranks.entry_point`.

Its job is a list of scenarios, or of schedules.
"""

from __future__ import annotations

from distsim.runtime.devices.freed_memory import keep_freed_memory
from distsim.runtime.launch import rank_context
from distsim.runtime.recording.rank_status import IMPORTING


def main() -> None:
    """Enters the context first, so that a hang or an error while torch is imported is reported too."""
    with rank_context.entered() as context:
        keep_freed_memory()
        context.slot.doing(IMPORTING)
        if "schedules" in context.job:
            from distsim.runtime.ranks import collective

            collective.run(context)
        else:
            from distsim.runtime.ranks import session

            session.run(context)


if __name__ == "__main__":
    main()
