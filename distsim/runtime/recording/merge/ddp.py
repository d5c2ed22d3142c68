"""Merges the records of distributed data parallel training, in the words of `engine.ddp`."""

from __future__ import annotations

from distsim.policies import Ddp
from distsim.runtime.recording.merge.computes import tell_computes
from distsim.runtime.recording.merge.peers import all_reduces, tell_all_reduce, tell_transfers
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import TraceBuilder


class DdpMerge:
    """The trace of workers whose buckets are all-reduced, one call for each bucket."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        assert isinstance(scenario.policy, Ddp)
        self.builder = TraceBuilder()
        tell_computes(self.builder, records, zero)
        shapes = [(int(numbers), int(number_bytes)) for numbers, number_bytes in records[0].facts["shapes"]]
        computed = [{int(step): end - zero for step, _, end in record.rows("backwards")} for record in records]
        workers, accumulate = range(scenario.cluster.workers), scenario.policy.accumulate
        for call, arrivals, ends in all_reduces(records, zero):
            update, bucket = divmod(call, len(shapes))
            steps = range(update * accumulate, (update + 1) * accumulate)
            # A worker does not wait while its backward goes on.
            idle_from = [max(arrivals[worker], computed[worker][steps[-1]]) for worker in workers]
            numbers, number_bytes = shapes[bucket]
            tell_all_reduce(
                self.builder, steps[-1], float(numbers * number_bytes), arrivals, ends, idle_from, f"bucket {bucket}"
            )
            if bucket + 1 < len(shapes):
                continue
            for worker in workers:
                for step in steps:
                    self.builder.applied(update + 1, worker, step, read_version=update)
            self.builder.update(update + 1, max(ends))
        tell_transfers(self.builder, records, scenario, shapes, zero)
