"""Feedback for a student, as Markdown: points, and reasons and a hint for each check that lost points.

Names and observations come from students, so they are escaped: a student cannot inject Markdown or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from distsim.grading.grade import Grade
from distsim.grading.result import NOT_IMPORTED, Result, not_run, shown, told_once

MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~!$])")  # characters with a meaning inside a line of Markdown or HTML


def feedback(grade: Grade) -> str:
    """The feedback page for one grade."""
    graded = f"`{grade.sha256}`" if grade.sha256 else "nothing"
    who = f"{grade.name}, {grade.student}" if grade.name else grade.student
    lines = [
        f"# {escaped(grade.lab)}: {shown(grade.points)} of {shown(grade.maximum)} points",
        "",
        f"Student: {escaped(who)}. Graded: {escaped(grade.path)}, SHA-256 {graded}, "
        f"with inputs drawn from the seed {grade.seed}.",
        "",
        "| check | points | of |",
        "|---|---:|---:|",
        *(f"| {escaped(one.check)} | {shown(one.points)} | {shown(one.maximum)} |" for one in grade.results),
    ]
    for remark in grade.remarks:
        lines += ["", f"Note: {escaped(remark)}"]
    for result in told_once(grade.results):
        lines += _lost(result, grade.results)
    return "\n".join([*lines, ""])


def _lost(result: Result, results: Sequence[Result]) -> list[str]:
    if fault := result.import_fault:
        checks = ", ".join(not_run(fault, results))
        head = f"## Not run: {escaped(checks)}" if checks else "## No check could run"
        return ["", head, "", fenced(f"{NOT_IMPORTED}{fault}")]
    lines = ["", f"## {escaped(result.check)}: {shown(result.points)} of {shown(result.maximum)}"]
    for name, text in result.reasons.items():
        if name == "hint":
            lines += ["", f"Hint: {escaped(text)}", *(["", f"How: {escaped(result.how)}"] if result.how else [])]
        else:
            lines += ["", f"{name.capitalize()}:", "", fenced(text)]
    return lines


def escaped(text: str) -> str:
    r"""Text escaped for one line of Markdown.

    >>> print(escaped("<b>|*x*"))
    \<b\>\|\*x\*
    """
    return MARKUP.sub(r"\\\1", " ".join(text.split()))


def fenced(text: str) -> str:
    """Text as a fenced block of Markdown. The fence is longer than any fence in the text.

    >>> print(fenced("```\\n# no heading"))
    ````text
    ```
    # no heading
    ````
    """
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
