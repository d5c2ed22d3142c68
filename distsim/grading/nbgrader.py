"""The labs as a course of nbgrader 0.9: its settings, a page for the instructor, and what holds while it grades.

OUT/nbgrader_config.py   nbgrader keeps each student's tasks.py, and refuses to grade where ranks cannot be confined
OUT/source/03_ring/      an assignment for each lab
OUT/README.md            for the instructor
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from distsim.errors import InputError
from distsim.grading.lab import TASKS, Lab
from distsim.grading.result import shown

REQUIREMENT = "nbgrader==0.9.6"  # the version that the tests use
SETTINGS, SOURCE = "nbgrader_config.py", "source"
TRUST_VARIABLE = "DISTSIM_GRADING_TRUST"
EXECUTION_VARIABLE = "NBGRADER_EXECUTION"  # nbgrader sets it for the kernels that it starts


def autogrades() -> bool:
    """Whether nbgrader runs this process to grade a submission."""
    return os.environ.get(EXECUTION_VARIABLE) == "autograde"


def check_confined(notebook: Any, resources: Any) -> tuple[Any, Any]:
    """A preprocessor for nbgrader, which calls it before it runs a submission's notebook.

    Raises InputError if ranks would run without confinement and the settings do not allow it. nbgrader then reports
    the error and records no points; without this, it would record zeros.
    """
    from distsim.testbed.sandbox import reason_against  # only Linux has what it needs

    if os.environ.get(TRUST_VARIABLE) != "1" and (reason := reason_against()):
        rule = f"would run without confinement here ({reason})"
        cure = f"grade on another machine, or set {TRUST_VARIABLE} in {SETTINGS} if you trust all submissions"
        raise InputError.of("submission", resources["nbgrader"]["student"], rule, cure)
    return notebook, resources


def settings(labs: Sequence[Lab]) -> str:
    """The text of nbgrader's settings."""
    kept = "".join(f'    "{lab.key}": ["{TASKS}"],\n' for lab in labs)
    seconds = round(max(lab.about.check_seconds for lab in labs))
    return f'''"""Settings of nbgrader 0.9 for the labs of distsim."""

import os

c = get_config()
c.CourseDirectory.course_id = "distsim"
c.Execute.timeout = {seconds}  # seconds for one cell

# Students write {TASKS}. Without this, nbgrader would grade the empty file of the release in its place.
c.Autograde.exclude_overwriting = {{
{kept}}}

# A submission runs confined. Where the machine cannot confine it, autograde reports an error and gives no points.
# If you trust all submissions, you may let them run there with your own rights: remove the # from the next line.
# os.environ["{TRUST_VARIABLE}"] = "1"
c.Autograde.autograde_preprocessors.insert(0, "{__name__}.{check_confined.__name__}")
'''


def readme(labs: Sequence[Lab]) -> str:
    """The text of the instructor's page."""
    rows = "".join(f"| {lab.key} | {lab.title} | {lab.about.minutes} | {shown(lab.points)} |\n" for lab in labs)
    first = labs[0]
    return f"""# The labs as a course of nbgrader

| assignment | | minutes | points |
|---|---|---:|---:|
{rows}
Install nbgrader 0.9 beside distsim, in the same environment: `pip install "{REQUIREMENT}"`. Call nbgrader in this
folder, where `{SETTINGS}` is.

```
nbgrader generate_assignment {first.key}
nbgrader autograde {first.key}
nbgrader generate_feedback {first.key}
nbgrader export
```

The first command writes `release/{first.key}` for the students. Collect each student's folder as
`submitted/STUDENT/{first.key}`, with `lab.ipynb` and `{TASKS}` in it. The second command grades; the points are those
of `distsim grade`. The third writes a page of feedback for each student, and the last writes `grades.csv`.

## Whom you trust

The checks run a student's `{TASKS}` in confined processes. But nbgrader runs the *notebook* that the student handed in,
with all cells that the student added, and with your rights. If you do not trust all students, let nbgrader collect, and
grade by

```
distsim grade {first.number} --all submitted
```

This command runs the instructor's own notebook, and reads nothing of a submission but `{TASKS}`. It writes
`grades_{first.key}/gradebook.csv` and a page of feedback for each student.

A machine without user namespaces (a container, often) cannot confine. `nbgrader autograde` then reports an error for
each submission, and records no points. `{SETTINGS}` says how to allow it to grade there all the same.
"""
