"""A model of the user's own: loading and checking it, and measuring its profile.

own_model      the function that builds module and batch; each rule that it breaks is one message
profile        warm-up and timed steps, with hooks at the layers
held_memory    the most memory that a step holds
"""
