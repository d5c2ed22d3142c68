"""Closed forms with their source: a second, independent derivation, against which the simulator is checked.

These modules import neither engine nor network nor trace. A formula takes numbers and returns numbers.
"""
