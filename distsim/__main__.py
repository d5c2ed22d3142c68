"""`python -m distsim` is `distsim`."""

from distsim.cli.entry import main

main()
