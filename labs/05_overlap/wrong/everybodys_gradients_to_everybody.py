# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""The same means, by gathering all gradients everywhere: the traffic grows with the number of ranks."""


class Gathered:
    def __init__(self, pieces, flat, work):
        self.pieces, self.flat, self.work = pieces, flat, work

    def wait(self):
        self.work.wait()
        self.flat.copy_(sum(self.pieces))


class Overlapped(Overlapped):
    def send(self, number):
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.buckets[number]]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        pieces = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
        self.sent[number] = (flat, Gathered(pieces, flat, dist.all_gather(pieces, flat, async_op=True)))
