# caught by: bytes_of_one_all_reduce
"""A number travels for every parameter, to say whether there is a gradient."""


def average_gradients(model, samples):
    trained = [one for one in model.parameters() if one.requires_grad]
    news = torch.tensor([samples, *(one.grad is not None for one in trained)])
    dist.all_reduce(news)
    total, *having = news.tolist()
    for one, count in zip(trained, having, strict=True):
        if count:
            one.grad = (torch.zeros_like(one) if one.grad is None else one.grad) * (samples / total)
            dist.all_reduce(one.grad)
