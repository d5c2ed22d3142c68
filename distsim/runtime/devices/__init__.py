"""The device of a rank: the choice of CPU or GPU, the timing of work there, and the sharing of a machine's cores."""
