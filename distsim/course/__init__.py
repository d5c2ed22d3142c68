"""The course's chapters: the functions for their notebooks, the judging of exercises, and the saving of notebooks.

In a notebook:

    from distsim.course import Chapter

    chapter = Chapter("02")
    guess = chapter.guess("step time", 55, unit="ms")

In course/exercises/02_one_step.py:

    from distsim.course import exercise, number
"""

from distsim.course.answer import Judged, choice, function, number, sequence
from distsim.course.chapter import Chapter
from distsim.course.design import design
from distsim.course.exercise import Exercise, exercise, exercises_in
from distsim.course.folder import course_folder
from distsim.course.program import run_program

__all__ = [
    "Chapter",
    "Exercise",
    "Judged",
    "choice",
    "course_folder",
    "design",
    "exercise",
    "exercises_in",
    "function",
    "number",
    "run_program",
    "sequence",
]
