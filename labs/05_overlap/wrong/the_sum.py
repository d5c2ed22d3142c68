# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, nothing_is_sent_inside_no_sync
"""Not divided by the number of ranks: a larger learning rate with every rank."""


class Overlapped(Overlapped):
    def finish(self):
        ranks = dist.get_world_size()
        super().finish()
        for bucket in self.buckets:
            for parameter in bucket:
                if self.communicates:
                    parameter.grad *= ranks
