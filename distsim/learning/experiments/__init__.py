"""Experiments in distributed learning, which a notebook calls and a test runs small. Each takes seeds.

staleness     fixed delays, and the delays of a real asynchronous run of the same mean
backups       time to a target loss against the number of backup workers
race          error against run time: synchronous, K of them, asynchronous
batch_size    large batches at constant and at scaled learning rates
local_sgd     the period between averages: loss against steps, averages and seconds
sparsity      what staleness does to dense and to sparse gradients

Every setting stands at the top of its module. Differences are taken between runs of one seed, and `interval` says how
sure their mean is.
"""
