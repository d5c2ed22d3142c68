# caught by: order_of_the_pieces
"""1F1B begins with a forward too many, so a stage holds the activations of one more micro-batch."""


def stage_order(stage, stages, micro_batches, schedule):
    ahead = micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)
    pieces = [("forward", micro) for micro in range(ahead)]
    for micro in range(micro_batches):
        if ahead + micro < micro_batches:
            pieces.append(("forward", ahead + micro))
        pieces.append(("backward", micro))
    return pieces
