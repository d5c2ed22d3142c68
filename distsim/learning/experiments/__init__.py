"""Experiments in distributed learning, for notebooks and explorers. Each takes seeds.

backups       time to a target loss against the number of backup workers
race          error against run time: synchronous, K of them, asynchronous
batch_size    loss and accuracy at a grid of batches and learning rates

Every setting stands at the top of its module. Differences are taken between runs of one seed; `statistics.interval`
gives the confidence interval of their mean.
"""
