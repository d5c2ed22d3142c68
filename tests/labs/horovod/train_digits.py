"""Trains on digits with the calls that Horovod's example for MNIST makes."""

import argparse

import tasks as hvd
import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from distsim.learning.digits import digits

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--use-adasum", action="store_true")
parser.add_argument("--unscale", action="store_true", help="steps as with a scaler of gradients")
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.norm = nn.BatchNorm1d(32)
        self.second = nn.Linear(32, 10)

    def forward(self, images):
        return functional.log_softmax(self.second(functional.relu(self.norm(self.first(images)))), dim=1)


def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


hvd.init()
torch.manual_seed(42 + hvd.rank())
torch.set_num_threads(1)
training, test = (TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y)) for x, y in digits())
train_sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
test_sampler = DistributedSampler(test, num_replicas=hvd.size(), rank=hvd.rank())
train_loader = DataLoader(training, batch_size=32, sampler=train_sampler)
test_loader = DataLoader(test, batch_size=100, sampler=test_sampler)

model = Net()
lr_scaler = hvd.size() if not args.use_adasum else 1
if args.use_adasum and hvd.nccl_built():
    lr_scaler = hvd.local_size()
optimizer = optim.SGD(model.parameters(), lr=args.lr * lr_scaler, momentum=args.momentum)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
    op=hvd.Adasum if args.use_adasum else hvd.Average,
    gradient_predivide_factor=args.gradient_predivide_factor,
)

for epoch in range(1, args.epochs + 1):
    model.train()
    train_sampler.set_epoch(epoch)
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = functional.nll_loss(model(data), target)
        if args.unscale:
            (loss * 8).backward()
            optimizer.synchronize()
            for parameter in model.parameters():
                parameter.grad /= 8
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            loss.backward()
            optimizer.step()

model.eval()
test_loss = test_accuracy = 0.0
for data, target in test_loader:
    output = model(data)
    test_loss += functional.nll_loss(output, target, reduction="sum").item()
    test_accuracy += output.argmax(dim=1).eq(target).float().sum().item()
test_loss = metric_average(test_loss / len(test_sampler), "avg_loss")
test_accuracy = metric_average(test_accuracy / len(test_sampler), "avg_accuracy")
own = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
apart = hvd.allreduce((own - hvd.broadcast(own, root_rank=0)).abs().max(), op=hvd.Sum).item()
if hvd.rank() == 0:
    print(f"accuracy {test_accuracy:.3f} apart {apart:g} local size {hvd.local_size()}")
