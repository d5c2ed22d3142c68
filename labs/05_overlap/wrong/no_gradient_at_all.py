# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, nothing_is_sent_inside_no_sync
"""Zeros are equal on all ranks too."""


class Overlapped(Overlapped):
    def finish(self):
        super().finish()
        for bucket in self.buckets:
            for parameter in bucket:
                parameter.grad = torch.zeros_like(parameter)
