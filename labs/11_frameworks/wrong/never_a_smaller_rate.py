# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""Right where updates have more samples than the rate suits."""


def learning_rate(job: Job) -> float:
    samples = dist.get_world_size() * job.accumulated * job.batch
    return job.rate * max(samples / job.rate_samples, 1.0)
