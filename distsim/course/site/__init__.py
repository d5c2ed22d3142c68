"""The course as a site to read: static pages with interactive figures, which need no server and no network.

`python -m distsim.course.site OUT/` builds it, and `make site` calls that. Sphinx with MyST-NB makes a page of every
chapter and lab that exists. Nothing is executed: the pages show saved outputs.
"""

from distsim.course.site.build import build

__all__ = ["build"]
