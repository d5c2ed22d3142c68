# caught by: one_all_reduce_for_each_bucket
"""Sends a bucket of more than 65,536 numbers in pieces."""

PIECE = 65536


class InPieces:
    def __init__(self, flat):
        self.works = [dist.all_reduce(piece, async_op=True) for piece in flat.split(PIECE)]

    def wait(self):
        for work in self.works:
            work.wait()


def send(self, number):
    flat = torch.cat(
        [
            (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).flatten()
            for parameter in self.buckets[number]
        ]
    )
    self.sent[number] = (flat, InPieces(flat))


Overlapped.send = send
