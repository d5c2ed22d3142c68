# caught by: who_may_begin, every_piece_once, nobody_is_late, pieces_from_the_tail, the_bound_is_kept
"""Compares with worker 0, as if no other one were slow."""


def may_begin(worker, done, items, staleness):
    return done[worker] // items <= done[0] // items + staleness
