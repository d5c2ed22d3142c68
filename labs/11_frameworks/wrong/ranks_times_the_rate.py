# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""Takes it that the rate suits one batch."""


def learning_rate(job: Job) -> float:
    return job.rate * dist.get_world_size() * job.accumulated
