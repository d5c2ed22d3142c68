# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""The local world size, which is the world size on one machine."""

import os


def learning_rate(job: Job) -> float:
    samples = int(os.environ["LOCAL_WORLD_SIZE"]) * job.accumulated * job.batch
    return job.rate * samples / job.rate_samples
