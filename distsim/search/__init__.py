"""Hyperparameter search: many trials, which a source chooses, on several workers.

job         what a worker does in one piece: a trial, or the next epochs of one
sources     who chooses the next job: a queue, an Optuna study, successive halving in step or asynchronous
clock       the source on the simulated clock, from recorded outcomes
processes   the same source, really run: by processes of this machine, or by any executor, such as a Dask client's
digits      the trial of the course: a small network on digits, with samples held out to choose by
"""
