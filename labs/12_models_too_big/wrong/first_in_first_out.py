# caught by: pipeline_as_one_process, no_stage_waits_or_keeps
"""The backward takes the oldest micro-batch, whichever is due: right for GPipe and 1F1B."""


def pipeline_step(part, order, inputs, targets, loss, tied=()):
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    samples = sum(len(one) for one in inputs)
    held, sent, total = {}, [], None
    for direction, micro in order:
        if direction == "forward":
            entering = inputs[micro]
            if stage > 0:
                entering = torch.empty_like(entering, device="cpu")
                dist.recv(entering, stage - 1)
                entering.requires_grad_()
            leaving, message = part(entering), None
            if stage < last:
                message = dist.isend(leaving.detach().contiguous(), stage + 1)
            else:
                leaving = loss(leaving, targets[micro]) * (len(entering) / samples)
                total = leaving.detach() if total is None else total + leaving.detach()
            held[micro] = entering, leaving, message
        else:
            entering, leaving, message = held.pop(next(iter(held)))
            gradient = None
            if stage < last:
                gradient = torch.empty_like(leaving, memory_format=torch.contiguous_format)
                dist.recv(gradient, stage + 1)
                message.wait()
            if leaving.requires_grad:
                leaving.backward(gradient)
            if stage > 0:
                sent.append(dist.isend(entering.grad.contiguous(), stage - 1))
    for message in sent:
        message.wait()
    for parameter, group in tied:
        if parameter.requires_grad:
            dist.all_reduce(parameter.grad, group=group)
    return total
