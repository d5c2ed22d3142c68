# caught by: layers_that_a_rank_does_not_use, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Sends whole buckets alone; the other ranks wait for ever."""


class Overlapped(Overlapped):
    def finish(self):
        if not self.communicates:
            return
        for number, (flat, work) in self.sent.items():
            work.wait()
            flat /= dist.get_world_size()
            bucket = self.buckets[number]
            for parameter, mean in zip(bucket, flat.split([parameter.numel() for parameter in bucket])):
                parameter.grad = mean.view_as(parameter)
