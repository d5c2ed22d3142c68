# caught by: order_of_the_pieces
"""GPipe does the backward of the last micro-batch first, as the paper draws it."""

right = stage_order


def stage_order(stage, stages, micro_batches, schedule):
    pieces = right(stage, stages, micro_batches, schedule)
    return pieces[:micro_batches] + pieces[micro_batches:][::-1] if schedule == "gpipe" else pieces
