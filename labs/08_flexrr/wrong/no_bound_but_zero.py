# caught by: who_may_begin, every_piece_once, pieces_from_the_tail, the_bound_is_kept
"""Right where nobody may be a step ahead."""


def may_begin(worker, done, items, staleness):
    return done[worker] // items <= min(done) // items
