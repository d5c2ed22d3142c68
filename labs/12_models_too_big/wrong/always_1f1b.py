# caught by: order_of_the_pieces
"""The schedule makes no difference."""


def stage_order(stage, stages, micro_batches, schedule):
    ahead = min(stages - 1 - stage, micro_batches)
    pieces = [("forward", micro) for micro in range(ahead)]
    for micro in range(micro_batches):
        if ahead + micro < micro_batches:
            pieces.append(("forward", ahead + micro))
        pieces.append(("backward", micro))
    return pieces
