"""The chapters' notebooks as documents: what nbval compares is there, what a reader needs, and nothing else."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course.cells import GUESS
from distsim.course.chapter import RECORDED_GUESSES
from distsim.course.folder import number_of
from distsim.explorers.catalogue import EXPLORERS
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.theme import config
from distsim.material import CONTEST
from tests.course.prose import marked_numbers

COURSE = Path(__file__).parents[2] / "course"
ROOT = COURSE.parent
CHAPTERS = sorted(COURSE.glob("[0-9][0-9]*_*.ipynb"))
NOTEBOOKS = sorted([*COURSE.rglob("*.ipynb"), *(ROOT / "labs").rglob("*.ipynb")])
COMPARED = "nbval-check-output"  # tag of a cell whose output nbval compares
MOST_BYTES = 300_000
MOST_LINES_TO_REMEMBER = 10
MOST_WORDS, MOST_LINES = 2200, 200  # of a chapter, which is read in one sitting
ANCHORS = {
    word.replace(" ", "-")
    for word in re.findall(r"^## (.+)$", (COURSE / "GLOSSARY.md").read_text("utf-8"), re.MULTILINE)
}
CLAIMS = re.findall(
    r"^\| (\d{3}-\d\d) \| ([^|]+) \| ([\db-z, ]+) \| (true|loose|wrong|reported) \| ([^|]*) ?\|$",
    (COURSE / "CLAIMS.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def notebook(path: Path) -> Any:
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: Any) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def section(notebook: Any, heading: str) -> str:
    """What stands under a heading of the second level, up to the next."""
    _, _, rest = prose(notebook).partition(f"## {heading}\n")
    return re.split(r"^## ", rest, flags=re.MULTILINE)[0].strip()


def test_every_chapter_has_its_exercises() -> None:
    assert [path.stem for path in CHAPTERS] == sorted(path.stem for path in (COURSE / "exercises").glob("*.py"))
    assert CHAPTERS[0].stem == "00_tour"


def test_compared_cells_hold_what_they_are_compared_with(notebook: Any) -> None:
    compared = [cell for cell in code(notebook) if COMPARED in cell.metadata.get("tags", [])]
    assert compared
    for cell in compared:
        assert cell.execution_count is not None
        assert cell.outputs


def test_nbval_reads_the_tag() -> None:
    """A tag that nbval does not know compares nothing, and says nothing."""
    plugin = pytest.importorskip("nbval.plugin")
    assert dict(plugin.find_metadata_tags({"tags": [COMPARED]})) == {"check": True}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_readers_see_no_word_of_our_tests(path: Path) -> None:
    assert "NBVAL" not in path.read_text("utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_stored_figure_has_the_configuration_of_all_figures(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    figures = [
        (number, output.data[PLOTLY_MIME])
        for number, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", [])
        if PLOTLY_MIME in output.get("data", {})
    ]
    stale = [number for number, figure in figures if figure.get("config") != config()]
    assert not stale, f"cells {stale} of {path.name} hold figures with another configuration; execute it anew"
    assert figures or path.stem not in EXPLORERS, "a page for an explorer shows its figure"


def test_a_chapter_ends_in_the_sum_of_its_points_and_the_record_of_guesses(notebook: Any) -> None:
    last, cell, record = code(notebook)[-3:]
    assert record.source == "chapter.record()"
    assert "chapter.check(" in last.source
    assert cell.source == "chapter.total()"
    (output,) = cell.outputs
    assert re.fullmatch(r"0 of \d+ points", output.data["text/plain"])
    assert "distsim-card" in output.data["text/html"]


def test_a_check_shows_its_card_and_nothing_else(notebook: Any) -> None:
    checks = [cell for cell in code(notebook) if "chapter.check(" in cell.source]
    assert checks
    for cell in checks:
        (output,) = cell.outputs
        assert output.data["text/plain"] == "0.0", "nbgrader and nbval read the points"
        assert "distsim-card" in output.data["text/html"]


def test_an_explorer_says_which_key_brings_it_to_life(notebook: Any) -> None:
    cells = [cell for cell in code(notebook) if "import explorer\n" in cell.source]
    assert cells
    for cell in cells:
        assert cell.source.startswith("# Press Shift+Enter in this cell: its controls come to life.\n")


def test_a_notebook_ends_with_a_link_to_the_next(path: Path, notebook: Any) -> None:
    following = [*CHAPTERS[CHAPTERS.index(path) + 1 :], ROOT / "labs" / "README.md"][0]
    assert next_page(path, notebook) == following


LABS = sorted((ROOT / "labs").glob("[0-9][0-9]_*/lab.ipynb"))


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.parent.name)
def test_a_lab_ends_with_a_link_to_the_chapter_after_the_one_that_names_it(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    naming = [chapter for chapter in CHAPTERS if f"../labs/{path.parent.name}/lab.ipynb" in syllabus_row(chapter)]
    after = dict(pairwise([*CHAPTERS, COURSE / "README.md"]))[naming[0]] if naming else COURSE / "README.md"
    assert next_page(path, notebook) == after
    checked = 0 if path.parent.name == CONTEST else 1  # the contest has no checks
    assert [cell.source for cell in code(notebook)].count("lab.total()") == checked


def syllabus_row(chapter: Path) -> str:
    lines = (COURSE / "README.md").read_text("utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith("|") and f"]({chapter.name}) |" in line]
    return row


def next_page(path: Path, notebook: Any) -> Path:
    """The page to which the last line of a notebook leads."""
    found = re.fullmatch(r"\*\*Next:\*\* \[[^\]]+\]\(([^)]+)\)[^\[]*", notebook.cells[-1].source)
    assert found, notebook.cells[-1].source
    return (path.parent / found[1]).resolve()


def test_a_lab_is_one_click_away(path: Path, notebook: Any) -> None:
    """Each lab that the syllabus gives a chapter is linked at the chapter's end, without a terminal."""
    (labs,) = [cell.source for cell in notebook.cells if cell.source.startswith("**Labs to do.**")]
    for key in re.findall(r"\.\./labs/(\w+)/lab\.ipynb", syllabus_row(path)):
        assert f"](../labs/{key}/lab.ipynb)" in labs
    assert "Click a lab to begin" in labs
    assert "lab start" not in labs


def test_cells_were_run_from_top_to_bottom(notebook: Any) -> None:
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


def test_nothing_is_stored_that_should_not_be(path: Path, notebook: Any) -> None:
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"nbgrader", "tags"} for cell in notebook.cells)
    assert path.stat().st_size < MOST_BYTES
    text = path.read_text("utf-8")
    assert "widget-view+json" not in text
    assert not re.search(r"/(home|root|tmp|Users)/", text)


def test_it_is_saved_as_its_command_saves_it(path: Path, notebook: Any) -> None:
    """So that executing it again changes outputs alone."""
    assert path.read_text("utf-8") == nbformat.writes(notebook) + "\n"


def test_headings_are_in_order_and_the_first_one_asks(notebook: Any) -> None:
    text = re.sub(r"```.*?```", "", prose(notebook), flags=re.DOTALL)
    headings = re.findall(r"^(#+) (.+)$", text, re.MULTILINE)
    levels = [len(marks) for marks, _ in headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert headings[0][1].endswith("?")
    assert notebook.cells[0].source.startswith("# ")


def test_the_guess_comes_before_anything_is_shown(notebook: Any) -> None:
    places = [place for place, cell in enumerate(notebook.cells) if GUESS in cell.metadata.get("tags", [])]
    assert places
    before = notebook.cells[: places[0]]
    assert not any(cell.get("outputs") for cell in before)
    assert not marked_numbers("\n".join(cell.source for cell in before))
    for place in places:
        assert "?" in "".join(cell.source for cell in notebook.cells[:place])


def test_no_guess_is_there_beforehand_and_each_has_a_recorded_one(path: Path, notebook: Any) -> None:
    """A guess is `...` until the learner writes a number; tests and the saved chapters take the recorded guess."""
    calls = [call for cell in code(notebook) for call in re.findall(r"chapter\.guess\(.+", cell.source)]
    quantities = [re.match(r"chapter\.guess\(\"([\w ,-]+)\", \.\.\., unit=\"[\w%]+\"\)  # ", call) for call in calls]
    assert all(quantities), calls
    table = tomllib.loads((COURSE / "exercises" / RECORDED_GUESSES).read_text("utf-8"))
    assert list(table[number_of(path)]) == [found[1] for found in quantities if found]


def test_every_guess_is_compared_and_every_comparison_was_guessed(notebook: Any) -> None:
    """By the quantity's name: a comparison also states its error, in the sentence under the figure."""
    guessed, compared = [], []
    for cell in code(notebook):
        guessed += re.findall(r"chapter\.guess\(\s*\"([^\"]+)\"", cell.source)
        if "chapter.compare(" in cell.source:
            (quantity,) = re.findall(r"quantity=\"([^\"]+)\"", cell.source) or ["step time"]
            assert quantity in guessed
            stages = ["guess", "measurement", *["simulation"] * (not quantity.startswith("error of"))]
            assert all(f"{stage}=" in cell.source for stage in stages)
            compared.append(quantity)
            sentence = cell.outputs[0].data["text/plain"]
            assert re.search(r"(Measured|Reported): .*the guess is [\d.]+ % (above|below)", sentence), sentence
    assert compared
    assert set(compared) <= set(guessed)


def test_a_prediction_beside_its_measurement_has_its_error(notebook: Any) -> None:
    """In the sentence under the figure; and the text tells where the error is large."""
    beside = []
    for place, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            figure = output.get("data", {}).get(PLOTLY_MIME)
            if figure and is_prediction_beside_measurement(figure):
                sentence = output.data["text/plain"]
                assert re.search(r"[\d.]+ % (above|below|off)|within [\d.]+ %", sentence), sentence
                beside.append(place)
    assert beside
    after = "\n".join(cell.source for cell in notebook.cells[beside[0] :] if cell.cell_type == "markdown")
    assert re.search(r"[Ee]rrors?\b[^.]{0,40}\b(is|are) large", after)


def is_prediction_beside_measurement(figure: Any) -> bool:
    """By the names of what is drawn and the words beside it."""
    layout = figure["layout"]
    titles = [layout.get(axis, {}).get("title", {}).get("text", "") for axis in ("xaxis", "yaxis")]
    notes = [note.get("text", "") for note in layout.get("annotations", [])]
    words = [*(trace.get("name", "") for trace in figure["data"]), *notes, *titles]
    measured = {word for word in words if re.search("measure", word)}
    return bool(measured) and any(
        re.search("simulat|predict|formula", word) or f"{word}, measured" in measured for word in words
    )


def test_what_a_prediction_beside_a_measurement_is_told_by() -> None:
    def drawn(*names: str, **layout: Any) -> Any:
        return {"data": [{"name": name} for name in names], "layout": layout}

    sides = [{"text": "<b>simulated</b>"}, {"text": "<b>measured</b>"}]
    axes = {"xaxis": {"title": {"text": "measured (ms)"}}, "yaxis": {"title": {"text": "predicted (ms)"}}}
    for figure in (drawn("formula", "measurement"), drawn("ring", "ring, measured"), drawn("wait", annotations=sides),
                   drawn("step", **axes)):  # fmt: skip
        assert is_prediction_beside_measurement(figure)
    for figure in (drawn("formula", "simulation"), drawn("ring", "server, measured"), drawn("wait")):
        assert not is_prediction_beside_measurement(figure)


def test_pictures_have_words(notebook: Any) -> None:
    """An image its alt text; a figure the sentence that stands for it, and its table."""
    for alternative, file in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", prose(notebook)):
        assert len(alternative) > 20, file
        assert (COURSE / file).exists()
    for cell in code(notebook):
        for figure, caption in pairwise([*cell.outputs, None]):
            if PLOTLY_MIME in figure.get("data", {}):
                assert len(figure.data["text/plain"]) > 20
                assert caption is not None
                assert "distsim-summary" in caption.data["text/html"]


def test_a_chapter_is_read_in_one_sitting(notebook: Any) -> None:
    """All words outside code count, and all lines of code but empty lines and comments."""
    lines = [line.strip() for cell in code(notebook) for line in cell.source.splitlines()]
    counted = [line for line in lines if line and not line.startswith("#")]
    assert len(prose(notebook).split()) <= MOST_WORDS
    assert len(counted) <= MOST_LINES


def test_no_shell_commands(notebook: Any) -> None:
    """A `!command` that fails passes unseen."""
    for cell in code(notebook):
        assert not re.search(r"^\s*[!%]", cell.source, re.MULTILINE)


def test_lines_of_code_fit_beside_each_other(notebook: Any) -> None:
    """Wider ones are cut off in a browser of half a screen."""
    for cell in code(notebook):
        assert max(map(len, cell.source.splitlines()), default=0) <= 110, cell.source


def test_what_to_remember_is_short_and_what_to_read_is_there(notebook: Any) -> None:
    lines = [line for line in section(notebook, "What to remember").splitlines() if line.strip()]
    assert 1 <= len(lines) <= MOST_LINES_TO_REMEMBER
    assert all(line.startswith("* ") and line.endswith(".") for line in lines)
    read = section(notebook, "What to read")
    assert re.search(r"\b(19|20)\d\d\b", read)
    headings = re.findall(r"^## (.+)$", prose(notebook), re.MULTILINE)
    assert headings[-2:] == ["What to remember", "What to read"]


def test_links_lead_somewhere_and_words_to_the_glossary(notebook: Any) -> None:
    links = re.findall(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)", prose(notebook))
    for link in links:
        file, _, anchor = link.partition("#")
        if link.startswith("https://"):
            continue
        assert (COURSE / file).exists(), link
        if file == "GLOSSARY.md" and anchor:
            assert anchor in ANCHORS, f"{link} has no entry"
    assert sum("GLOSSARY.md#" in link for link in links) >= 4


def test_the_claims_of_the_articles_are_taught_where_the_table_says(path: Path, notebook: Any) -> None:
    number = number_of(path)
    marked = re.findall(r"<!-- claim: ([\d, -]+) -->", prose(notebook))
    taught = {claim.strip() for group in marked for claim in group.split(",")}
    named = {claim for claim, _, chapters, *_ in CLAIMS if number in chapters.replace(" ", "").split(",")}
    assert taught == named


def test_the_table_of_claims_is_whole() -> None:
    text = (COURSE / "CLAIMS.md").read_text("utf-8")
    assert len(CLAIMS) == len(re.findall(r"^\| \d", text, re.MULTILINE)) > 100
    for article in ("001", "002", "003", "004"):
        numbers = [int(claim[4:]) for claim, *_ in CLAIMS if claim.startswith(article)]
        assert numbers == list(range(1, len(numbers) + 1))
    for claim, _, _, holds, amiss in CLAIMS:
        assert (holds == "true") == (not amiss.strip()), f"{claim}: what is loose or wrong says why, and nothing else"
