"""The student's file is the solution without the parts to write."""

from __future__ import annotations

import pytest

from distsim.errors import InputError
from distsim.grading.lab import Lab
from distsim.grading.stub import removed_lines, stub, up_to_date, write_stub

SOLUTION = '''"""A module."""

import math

# write
SECRET_NUMBER = 17
# end


def one(x: int) -> int:
    """First sentence of `one`. Second one.

    More.
    """
    kept = math.floor(x)
    # write
    if kept > SECRET_NUMBER:
        kept = kept - SECRET_NUMBER
    # end
    return kept


class Two:
    """A class."""

    async def three(self) -> None:
        """Says "3", and \\\\ too."""

        def four() -> int:
            """Gives four."""
            # write
            return 2 + 2 + 0 * 17
            # end

        # write
        assert four() == SECRET_NUMBER - 13
        # end
'''
STUB = '''"""A module."""

import math


def one(x: int) -> int:
    """First sentence of `one`. Second one.

    More.
    """
    kept = math.floor(x)
    raise NotImplementedError("write one: First sentence of `one`.")
    return kept


class Two:
    """A class."""

    async def three(self) -> None:
        """Says "3", and \\\\ too."""

        def four() -> int:
            """Gives four."""
            raise NotImplementedError("write Two.three.four: Gives four.")

        raise NotImplementedError("write Two.three: Says \\"3\\", and \\\\ too.")
'''


def test_parts_become_what_to_write_and_all_else_stays() -> None:
    assert stub(SOLUTION) == STUB
    assert stub(SOLUTION) == stub(SOLUTION)


def test_what_is_removed() -> None:
    assert removed_lines(SOLUTION) == {
        "SECRET_NUMBER = 17", "if kept > SECRET_NUMBER:", "kept = kept - SECRET_NUMBER", "return 2 + 2 + 0 * 17",
        "assert four() == SECRET_NUMBER - 13",
    }  # fmt: skip


def test_a_long_sentence_is_quoted_whole() -> None:
    sentence = "Sums " + 'and sums \\\\ "again" ' * 20 + "until it is done."
    solution = f'def one() -> None:\n    r"""{sentence}"""\n    # write\n    pass\n    # end\n'
    made = stub(solution)
    assert max(map(len, made.splitlines()[2:])) <= 120
    scope: dict[str, object] = {}
    exec(made, scope)
    with pytest.raises(NotImplementedError) as raised:
        scope["one"]()  # type: ignore[operator]
    assert str(raised.value) == f"write one: {sentence}"


@pytest.mark.parametrize("letters", [*range(50, 60), *range(90, 112)])
def test_a_sentence_of_any_length_is_written_as_ruff_formats_it(letters: int) -> None:
    """In one line where it fits into 120 letters, which ruff would make of pieces."""
    sentence = f"{'word ' * 30}"[: letters - 1].rstrip().ljust(letters - 1, "x") + "."
    made = stub(f'def one():\n    """{sentence}"""\n    # write\n    return 1\n    # end\n')
    said = f'"write one: {sentence}"'
    quoted = [line.strip() for line in made.splitlines() if line.strip().startswith(('"w', "raise"))]
    fits = 8 + len(said) <= 120
    assert any(said in line for line in quoted) == fits, made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "is nowhere in it"),
        ("# write\nx = 1\n", "has no # end"),
        ("# end\nx = 1\n", "every # write must have its # end"),
        ("# write\n# write\n# end\n", "every # write must have its # end"),
        ("x = 1  # write\n# end\n", "must stand alone on its line"),
        ("def f():\n    # write\n    return 1\n    # end\n", "no docstring"),
        ("def f(:\n    pass\n", "is no Python"),
        ("if True:\n    # write\n    x = 1\n    # end\n", "what is left of"),
    ],
)
def test_what_cannot_be_a_solution_is_explained(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        stub(text)


def test_a_comment_in_a_text_is_no_comment() -> None:
    assert '"""\n# write\n"""' in stub('x = """\n# write\n"""\n# write\ny = 1\n# end\n')


def test_the_file_beside_the_solution(lab: Lab) -> None:
    assert up_to_date(lab), "distsim lab stub 90 --labs tests/grading/labs"
    (lab.folder / "tasks.py").write_text("")
    assert not up_to_date(lab)
    write_stub(lab)
    assert up_to_date(lab)
