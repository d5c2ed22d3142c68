"""Trains a small network on handwritten digits, in the way of Horovod. Nothing in here is to be changed.

    torchrun --nproc-per-node 4 train.py --epochs 5

With Horovod itself, `import horovod.torch as hvd` stands in place of the import of tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import tasks as hvd
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    """A convolution and two linear layers, for images of 8 x 8 pixels. Buffers say what pixels are like."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(0.3))
        self.register_buffer("scale", torch.tensor(0.4))
        self.convolution = nn.Conv2d(1, 4, kernel_size=3)
        self.hidden = nn.Linear(4 * 6 * 6, 32)
        self.classes = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """One number for each class and image."""
        pixels = (images.view(-1, 1, 8, 8) - self.mean) / self.scale
        return self.classes(torch.relu(self.hidden(torch.relu(self.convolution(pixels)).flatten(1))))


def main(arguments: Sequence[str] | None = None, data: tuple[Dataset, Dataset] | None = None) -> list[list[float]]:
    """The loss and the accuracy on the test images after each epoch, the same on every rank."""
    args = parsed(arguments)
    hvd.init()
    torch.manual_seed(args.seed + hvd.rank())
    device = torch.device("cuda", hvd.local_rank()) if args.cuda else torch.device("cpu")
    if args.cuda:
        torch.cuda.set_device(device)
    training, test = data or digits()
    # Each process takes its own part of the data.
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    test_sampler = DistributedSampler(test, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=False)
    loader = DataLoader(training, batch_size=args.batch_size, sampler=sampler)
    test_loader = DataLoader(test, batch_size=args.batch_size, sampler=test_sampler)

    model = Net().to(device)
    # The joined batch grows with the number of processes, and the learning rate with it.
    sgd = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=args.momentum)
    first_epoch = torch.tensor(0)
    if args.resume and hvd.rank() == 0:
        checkpoint = torch.load(args.resume, map_location=device, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        sgd.load_state_dict(checkpoint["optimizer"])
        first_epoch.fill_(checkpoint["epoch"])

    sgd = hvd.DistributedOptimizer(sgd, named_parameters=model.named_parameters())
    # All begin as rank 0 does.
    hvd.broadcast_parameters({"first_epoch": first_epoch}, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(sgd, root_rank=0)
    schedule = torch.optim.lr_scheduler.StepLR(sgd, step_size=1, gamma=args.gamma)

    history = []
    for epoch in range(int(first_epoch), args.epochs):
        sampler.set_epoch(epoch)
        train(model, sgd, loader, device, args)
        schedule.step()
        loss, accuracy = tested(model, test_loader, device)
        history.append([loss, accuracy])
        if hvd.rank() == 0:
            print(f"epoch {epoch}: test loss {loss:.4f}, {accuracy:.1%} of the digits are right")
    return history


def train(model: Net, sgd: torch.optim.SGD, loader: DataLoader, device: torch.device, args: argparse.Namespace) -> None:
    """One epoch."""
    model.train()
    for images, classes in loader:
        sgd.zero_grad()
        cross_entropy(model(images.to(device)), classes.to(device)).backward()
        if args.clip:
            sgd.synchronize()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            with sgd.skip_synchronize():
                sgd.step()
        else:
            sgd.step()


@torch.no_grad()
def tested(model: Net, loader: DataLoader, device: torch.device) -> tuple[float, float]:
    """Loss and accuracy: each process looks at its part of the test images, then all take the mean."""
    model.eval()
    loss, right = torch.zeros((), device=device), torch.zeros((), device=device)
    for images, classes in loader:
        outputs = model(images.to(device))
        loss += cross_entropy(outputs, classes.to(device), reduction="sum")
        right += (outputs.argmax(dim=1) == classes.to(device)).sum()
    count = len(loader.sampler)
    return (
        hvd.allreduce(loss / count, name="test loss").item(),
        hvd.allreduce(right / count, name="test accuracy").item(),
    )


def digits() -> tuple[Dataset, Dataset]:
    """scikit-learn's digits, to train with and to test with."""
    from distsim.learning.digits import digits as images

    training, test = (TensorDataset(*map(torch.from_numpy, part)) for part in images())
    return training, test


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was given on the command line."""
    parser = argparse.ArgumentParser(description="digits, in the way of Horovod")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16, help="images of a process in one batch")
    parser.add_argument("--lr", type=float, default=0.02, help="learning rate of one process; n processes take n times")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--gamma", type=float, default=0.9, help="what the learning rate is multiplied by each epoch")
    parser.add_argument("--clip", type=float, default=0.0, help="the gradient's largest norm; 0: any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", help="a checkpoint, which rank 0 reads")
    parser.add_argument("--cuda", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
