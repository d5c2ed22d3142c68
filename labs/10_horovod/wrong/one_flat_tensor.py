# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""All gradients in one all-reduce, once backward is over."""


class Distributed(Distributed):
    def ready(self, parameter):
        pass

    def synchronize(self):
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.queue]
        flat = torch.cat([gradient.flatten() for gradient in gradients]) / self.divided_before
        travelling, known = self.compression.compress(flat)
        dist.all_reduce(travelling)
        flat = self.compression.decompress(travelling, known) / self.divided_after
        for parameter, mean in zip(self.queue, flat.split([one.numel() for one in self.queue]), strict=True):
            parameter.grad = mean.view_as(parameter)
