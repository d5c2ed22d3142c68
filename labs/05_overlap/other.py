"""Lab 05, written differently: gradients are copied into flat buffers as they come, and a queue keeps the turn."""

import contextlib

import torch
import torch.distributed as dist


def make_buckets(parameters, bucket_bytes):
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    buckets = []
    while trained:
        bucket = []
        while trained and sum(parameter.nbytes for parameter in bucket) < bucket_bytes:
            bucket.append(trained.pop())
        buckets.append(bucket)
    return buckets


class Overlapped:
    def __init__(self, model, bucket_bytes):
        self.buckets = make_buckets(list(model.parameters()), bucket_bytes)
        self.flat = [torch.cat([parameter.detach().flatten() for parameter in bucket]) for bucket in self.buckets]
        self.silent = False
        for number, bucket in enumerate(self.buckets):
            slots = self.flat[number].split([parameter.numel() for parameter in bucket])
            for parameter, slot in zip(bucket, slots):
                parameter.register_post_accumulate_grad_hook(self.hook(number, slot))
        self.begin()

    def hook(self, number, slot):
        def keep(parameter):
            if not self.silent:
                slot.copy_(parameter.grad.flatten())
                self.here[number] += 1
                self.leave(lambda waiting: self.here[waiting] == len(self.buckets[waiting]))

        return keep

    def begin(self):
        self.here = [0] * len(self.buckets)
        self.queue = list(range(len(self.buckets)))
        self.works = []
        if not self.silent:
            for flat, bucket in zip(self.flat, self.buckets):
                old = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
                flat.copy_(torch.cat([gradient.flatten() for gradient in old]))

    def leave(self, may_leave):
        while self.queue and may_leave(self.queue[0]):
            self.works.append(dist.all_reduce(self.flat[self.queue.pop(0)], async_op=True))

    def finish(self):
        if self.silent:
            return
        self.leave(lambda _waiting: True)
        for work in self.works:
            work.wait()
        for flat, bucket in zip(self.flat, self.buckets):
            start = 0
            for parameter in bucket:
                end = start + parameter.numel()
                parameter.grad = flat[start:end].reshape(parameter.shape) / dist.get_world_size()
                start = end

    @contextlib.contextmanager
    def no_sync(self):
        before, self.silent = self.silent, True
        try:
            yield self
        finally:
            self.silent = before


def data_parallel_seconds(devices, forward, backward, model_bytes, bytes_per_second, interpreter):
    one_way = model_bytes * (devices - 1) / bytes_per_second
    launching = interpreter * devices
    return sum((one_way, launching if launching > forward else forward, backward, one_way))
