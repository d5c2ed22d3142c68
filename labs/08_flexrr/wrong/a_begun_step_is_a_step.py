# caught by: who_may_begin, every_piece_once, nobody_is_late, pieces_from_the_tail, the_bound_is_kept
"""Counts a step of the slowest worker as soon as one of its pieces is done."""


def may_begin(worker, done, items, staleness):
    return done[worker] // items <= -(-min(done) // items) + staleness
