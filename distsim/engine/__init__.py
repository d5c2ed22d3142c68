"""The clocks: the SimPy story, one process per worker and server."""
