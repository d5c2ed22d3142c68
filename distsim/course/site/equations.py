"""Equations as MathML, which browsers draw, in a font that the site includes: STIX Two Math."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util import logging

if TYPE_CHECKING:
    from math_core import LatexToMathML

logger = logging.getLogger(__name__)


def mathml(latex: str, *, display: bool) -> str:
    r"""The equation for a page. display: on a line of its own. Raises math_core.LatexError for unreadable LaTeX.

    >>> mathml(r"\frac{n}{B}", display=False)
    '<math><mfrac><mi>n</mi><mi>B</mi></mfrac></math>'
    """
    return _converter().convert_with_local_state(latex, displaystyle=display)


@cache
def _converter() -> LatexToMathML:
    from math_core import LatexToMathML

    return LatexToMathML()


def inline(writer: Any, node: nodes.math) -> None:
    """For Sphinx's writer: writes an equation in a line of text."""
    writer.body.append(_put(node, display=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """For Sphinx's writer: writes an equation on its own line, which a narrow screen can scroll sideways."""
    writer.body.append(f'<div class="math" tabindex="0">{_put(node, display=True)}</div>\n')
    raise nodes.SkipNode


def _put(node: nodes.Element, *, display: bool) -> str:
    from math_core import LatexError

    try:
        return mathml(node.astext(), display=display)
    except LatexError as error:
        logger.warning("an equation cannot be read: %s", error, location=node)
        return ""
