"""Builds the site by Sphinx. A warning of Sphinx, such as a broken link, is an error here."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from distsim.course.site import moving
from distsim.course.site.extension import MOVING_FOLDER
from distsim.course.site.pages import FOLDER, PATTERNS, SYLLABUS
from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS
from distsim.extras import need
from distsim.figures.theme import DARK, SCROLLING

STATIC, TEMPLATES = Path(__file__).parent / "static", Path(__file__).parent / "templates"
PLOTLY, FONT = "package_data/plotly.min.js", "fonts/STIXTwoMath-Regular.ttf"  # in the packages plotly and ziamath
MARK = ".buildinfo"  # Sphinx leaves it in every site
NEEDED = ("sphinx", "myst_nb", "furo", "math_core", "ziamath", "plotly")
ESCAPE = re.compile(r"\x1b\[[\d;]*m")
WELCOME = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={page}">
<title>distsim: the course</title>
</head>
<body>
<h1>The course</h1>
<p><a href="{page}">Its syllabus</a> opens by itself.</p>
</body>
</html>
"""


def build(root: Path, out: Path) -> int:
    """Builds the site of the course and the labs in `root`, into the folder `out`. Returns the number of its pages.

    Raises InputError where a package is missing, `out` holds something else, or a page has a fault.
    """
    for package in NEEDED:
        need(package, "the site")
    _check_free(out)
    with tempfile.TemporaryDirectory() as work:
        made, explorers = Path(work) / "html", Path(work) / "explorers"
        explorers.mkdir()
        for name, html in moving.pages([name for name in EXPLORERS if (root / f"{FOLDER}/{name}.ipynb").exists()]):
            (explorers / f"{name}.html").write_text(html, "utf-8")
        pages = _run_sphinx(root, made, Path(work) / "doctrees", {MOVING_FOLDER: str(explorers)})
        (made / "index.html").write_text(WELCOME.format(page=f"{SYLLABUS}.html"), "utf-8")
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(made, out)
    return pages


def _check_free(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists():
        raise InputError.of("OUT/", str(out), "holds something that is no site of ours", "name a new folder")
    if out.exists() and not out.is_dir():
        raise InputError.of("OUT/", str(out), "is no folder", "name a new folder")


def _run_sphinx(root: Path, out: Path, doctrees: Path, ours: Mapping[str, object]) -> int:
    """Returns the number of pages. ours: settings of our extension. Raises InputError with all warnings of Sphinx."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            root, None, out, doctrees, "html", confoverrides={**_settings(root), **ours}, status=None, warning=warnings,
            freshenv=True,
        )  # fmt: skip
        app.build(force_all=True)
        pages = len(app.env.found_docs)
    told = ESCAPE.sub("", warnings.getvalue()).strip()
    if told:
        raise InputError.of("site", str(root), f"its pages have faults:\n{told}", "repair these")
    return pages


def _settings(root: Path) -> dict[str, object]:
    """The settings of Sphinx and its extensions, by their names there."""
    return {
        "project": "distsim",
        "html_title": "distsim: the course",
        "language": "en",
        "extensions": ["myst_nb", "distsim.course.site.extension"],
        "root_doc": SYLLABUS,
        "include_patterns": [pattern for pattern in PATTERNS if any(root.glob(pattern))],
        "myst_enable_extensions": ["dollarmath"],
        "myst_heading_anchors": 3,
        "nb_execution_mode": "off",
        "nb_merge_streams": True,
        "html_theme": "furo",
        "html_theme_options": {
            "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
            "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
        },
        "html_math_renderer": "mathml",
        "templates_path": [str(TEMPLATES)],
        "html_static_path": [
            str(STATIC),
            str(DARK),
            str(SCROLLING),
            str(_beside("plotly", PLOTLY)),
            str(_beside("ziamath", FONT)),
        ],
        "html_css_files": ["site.css", DARK.name],
        "html_copy_source": False,
        "html_use_index": False,
        "html_show_search_summary": False,  # a summary is fetched, which browsers forbid for pages on a disk
        "html_show_copyright": False,
        "highlight_language": "none",  # for blocks without a language; cells of notebooks are Python
        "pygments_style": "a11y-high-contrast-light",
    }


def _beside(package: str, file: str) -> Path:
    """A file of an installed package."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / file
