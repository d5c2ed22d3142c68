# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""Takes the rate of the script."""


def learning_rate(job: Job) -> float:
    samples = job.accumulated * job.batch
    return job.rate * samples / job.rate_samples
