"""`python -m distsim` is `distsim`."""

from distsim.cli.main import main

main()
