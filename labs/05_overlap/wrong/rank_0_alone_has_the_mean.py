# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""A reduce in place of an all-reduce."""


class Overlapped(Overlapped):
    def send(self, number):
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.buckets[number]]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.sent[number] = (flat, dist.reduce(flat, dst=0, async_op=True))
