# caught by: who_may_begin, every_piece_once, pieces_from_the_tail, the_bound_is_kept
"""Compares pieces with a bound in steps."""


def may_begin(worker, done, items, staleness):
    return done[worker] <= min(done) + staleness
