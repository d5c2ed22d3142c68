"""Numbers in a chapter's prose that a cell computes: `16.2<!-- =slowest_ms - mean_ms --> ms`."""

from __future__ import annotations

import re
from dataclasses import dataclass

COMMENT = re.compile(r"<!--\s*=\s*(.+?)\s*-->", re.DOTALL)
NUMBER = re.compile(r"(-?\d[\d,]*(?:\.(?P<decimals>\d+))?)[^\d<]{0,12}$")


@dataclass(frozen=True)
class Marked:
    """A number as it is written, and the expression that it must equal."""

    written: str
    expression: str

    def fits(self, value: float) -> bool:
        """Whether the value, rounded to the decimals that are written, is the number.

        >>> Marked("1,250", "steps").fits(1250.4), Marked("16.2", "x").fits(16.26)
        (True, False)
        """
        decimals = len(self.written.partition(".")[2])
        return f"{value:,.{decimals}f}" == self.written or f"{value:.{decimals}f}" == self.written


def marked_numbers(text: str) -> list[Marked]:
    """The marked numbers of a text. Raises ValueError where a mark has no number before it.

    >>> marked_numbers("It takes 16.2<!-- =a - b --> ms.")
    [Marked(written='16.2', expression='a - b')]
    """
    found = []
    for match in COMMENT.finditer(text):
        number = NUMBER.search(text[: match.start()])
        if number is None:
            raise ValueError(f"no number stands before {match.group()}")
        found.append(Marked(number[1], match[1]))
    return found


def unmarked_decimals(text: str) -> set[str]:
    """Numbers with a decimal point that no mark follows; what stands in code, formulas and links is left out.

    >>> sorted(unmarked_decimals("Of 16.2<!-- =a --> ms and 5.3 ms, $x = 1.5$, `2.5`, [arXiv 1.2](x)."))
    ['5.3']
    """
    rest = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$]+\$|`[^`]*`|\[[^\]]*\]\([^)]*\)", " ", text, flags=re.DOTALL)
    rest = re.sub(NUMBER.pattern.removesuffix("$") + COMMENT.pattern, " ", rest, flags=re.DOTALL)
    return set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", rest))
