"""How fast the simulator is: every speed figure with its bound, beside the speed of SimPy measured in the same run."""
