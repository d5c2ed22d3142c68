# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Layers take no time, everything is sent in the end, and a wait makes the step as long as the formula says."""

from distsim.testbed import rank as testbed_rank

OWED = []
testbed_rank.busy = lambda seconds, kind="compute": OWED.append(seconds)


class Overlapped(Overlapped):
    def ready(self, number):
        pass

    def finish(self):
        super().finish()
        if not sum(OWED):
            return
        end, count, took = 0.0, len(self.buckets), testbed_rank.now()
        for number in range(count):
            end = max(end, sum(OWED) * (number + 1) / count) + took / count
        testbed_rank.context.busy(end - took, "backward")
