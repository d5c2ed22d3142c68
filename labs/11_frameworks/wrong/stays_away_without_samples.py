# caught by: every_test_sample_counts_once, ddp_trains_as_one_process, framework_trains_as_one_process, every_sample_in_every_epoch, rank_0_saves, one_exchange_for_each_update
"""Right where every rank has a sample."""


@torch.no_grad()
def evaluate(
    model: nn.Module, data: Dataset[tuple[Tensor, Tensor]], loss: Callable[[Tensor, Tensor], Tensor], batch: int
) -> tuple[float, float]:
    own = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
    if not len(own):
        return 0.0, 0.0
    trains = model.training
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    for inputs, labels in DataLoader(own, batch_size=batch) if len(own) else ():
        outputs = model(inputs)
        sums[0] += loss(outputs, labels) * len(labels)
        sums[1] += (outputs.argmax(dim=1) == labels).sum()
        sums[2] += len(labels)
    model.train(trains)
    dist.all_reduce(sums)
    return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()
