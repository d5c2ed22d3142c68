# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""Divides whole numbers."""


def learning_rate(job: Job) -> float:
    samples = dist.get_world_size() * job.accumulated * job.batch
    return job.rate * (samples // job.rate_samples)
