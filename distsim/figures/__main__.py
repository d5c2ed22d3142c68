"""`python -m distsim.figures` prints the table of all figures as Markdown."""

from distsim.figures.catalogue import markdown

print(markdown())
