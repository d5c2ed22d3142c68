"""The course as a site to read: static pages with figures that move, which need no server and no network.

`python -m distsim.course.site OUT/` builds it, and `make site` calls that. Sphinx with MyST-NB makes the pages of what
is in the course and the labs: whatever chapter is there stands in them. Nothing is executed: saved outputs are shown.
"""

from distsim.course.site.build import build

__all__ = ["build"]
