"""Ranks on a GPU that is none: sums by a process group of their own, and moments that are only known after a wait."""

from __future__ import annotations

from datetime import timedelta

from distsim.runtime.launch import rank_context

if __name__ == "__main__":
    with rank_context.entered() as context:
        import torch
        import torch.distributed as dist

        from distsim.runtime.devices import device
        from distsim.runtime.devices.stopwatch import Moment, Stopwatch
        from distsim.runtime.ranks import session

        class LateStopwatch(Stopwatch):
            """As on a GPU, nobody may ask for a moment before a wait has followed it."""

            waits = 0

            def moment(self) -> Moment:
                known, before = super().moment(), self.waits

                def read() -> float:
                    if self.waits == before:
                        raise RuntimeError("a moment was read before the work was waited for")
                    return known()

                return read

            def wait(self) -> float:
                self.waits += 1
                return super().wait()

        def free(patience: timedelta) -> device.Device:
            group = dist.new_group(backend="gloo", timeout=patience)
            names = ("a GPU",) * dist.get_world_size()
            return device.Device(torch.device("cpu"), "late", group, LateStopwatch(), names, "of a test")

        device.free = free
        session.run(context)
