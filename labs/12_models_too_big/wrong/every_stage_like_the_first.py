# caught by: order_of_the_pieces
"""Every stage begins with as many forwards as the first one."""


def stage_order(stage, stages, micro_batches, schedule):
    ahead = micro_batches if schedule == "gpipe" else min(stages - 1, micro_batches)
    pieces = [("forward", micro) for micro in range(ahead)]
    for micro in range(micro_batches):
        if ahead + micro < micro_batches:
            pieces.append(("forward", ahead + micro))
        pieces.append(("backward", micro))
    return pieces
