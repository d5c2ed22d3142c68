"""Where a rank works: the choice of CPU or GPU, how work there is timed, and how ranks share a machine's cores."""
