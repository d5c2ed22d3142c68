# caught by: rate_of_all_ranks, ddp_trains_as_one_process, framework_trains_as_one_process
"""Right for two ranks."""


def learning_rate(job: Job) -> float:
    samples = 2 * job.accumulated * job.batch
    return job.rate * samples / job.rate_samples
