"""The gradebook as CSV: a row per student, a column per check. Names are never formulas in a spreadsheet.

The column `student` has the key by which a learning platform finds the student, see `class_folder`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from distsim.grading.grade import Grade
from distsim.grading.lab import Lab
from distsim.grading.result import shown

FORMULA_STARTS = ("=", "+", "-", "@")  # of a formula in a spreadsheet


def gradebook(grades: Sequence[Grade], lab: Lab) -> str:
    """The text of the CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "name", *lab.checks, "total", "maximum", "sha256"])
    for grade in grades:
        points = {result.check: shown(result.points) for result in grade.results}
        own = [points[name] for name in lab.checks]
        who = [cell(grade.student), cell(grade.name or grade.student)]
        writer.writerow([*who, *own, shown(grade.points), shown(grade.maximum), grade.sha256])
    return text.getvalue()


def cell(name: str) -> str:
    """A name, quoted if a spreadsheet would read the name as a formula.

    >>> cell("ada"), cell("=1+1"), cell(" @x")
    ('ada', "'=1+1", "' @x")
    """
    return f"'{name}" if name.lstrip(" \t'\"").startswith(FORMULA_STARTS) else name
