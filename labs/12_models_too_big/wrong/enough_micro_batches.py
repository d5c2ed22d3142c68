# caught by: order_of_the_pieces
"""1F1B is right where there are at least as many micro-batches as stages."""


def stage_order(stage, stages, micro_batches, schedule):
    ahead = micro_batches if schedule == "gpipe" else stages - 1 - stage
    pieces = [("forward", micro) for micro in range(ahead)]
    for micro in range(micro_batches):
        if ahead + micro < micro_batches:
            pieces.append(("forward", ahead + micro))
        pieces.append(("backward", micro))
    return pieces
