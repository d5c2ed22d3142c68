# caught by: layers_that_a_rank_does_not_use, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Ranks send tensors of different lengths."""


class Overlapped(Overlapped):
    def send(self, number):
        gradients = [parameter.grad.flatten() for parameter in self.buckets[number] if parameter.grad is not None]
        flat = torch.cat(gradients) if gradients else torch.zeros(0)
        self.sent[number] = (flat, dist.all_reduce(flat, async_op=True))
