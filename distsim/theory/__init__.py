"""Closed forms with their source: a second, independent derivation that the simulator is checked against.

Nothing here knows the engine, the network or a trace; a formula takes numbers and gives numbers.
"""
