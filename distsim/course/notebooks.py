"""The chapters' notebooks, executed from a clean kernel and saved in place.

`python -m distsim.course.notebooks 00 02` saves these chapters; without a number, it saves all chapters. A notebook
keeps its outputs, since nbval compares them. In place of a widget it keeps the widget's first figure, as a plain
figure. Metadata that differ from machine to machine are not kept. A chapter that fails is not saved.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from distsim.course.chapter import RECORDED
from distsim.course.folder import course_folder, number_of
from distsim.errors import DistsimError, InputError, RunError
from distsim.explorers.notebooks import METADATA
from distsim.files import write_text
from distsim.grading.metadata import read, without_outputs

CELL_SECONDS = 120
KEPT = ("nbgrader", "tags")  # of a cell's metadata
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
REFERENCE = "IPY_MODEL_"


def chapters(folder: Path, numbers: Sequence[str] = ()) -> list[Path]:
    """The notebooks of these chapters, or of all. Raises InputError where the course has no chapter of a number."""
    found = sorted(folder.glob("[0-9][0-9]*_*.ipynb"))
    for number in numbers:
        if not any(path.name.startswith(f"{number}_") for path in found):
            known = ", ".join(number_of(path) for path in found)
            raise InputError.of("chapter", number, f"has no notebook in {folder}", f"take one of {known}")
    return [path for path in found if not numbers or number_of(path) in numbers]


def executed(notebook: Any, folder: Path) -> Any:
    """The notebook with the outputs of a clean kernel that works in `folder`.

    Raises RunError with the first cell that fails.
    """
    client = NotebookClient(
        without_outputs(notebook), timeout=CELL_SECONDS, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    try:
        # A progress bar comes and goes with the machine's load, and nobody is there to guess.
        return client.execute(env=os.environ | {"TQDM_DISABLE": "1", RECORDED: "1"})
    except CellExecutionError as error:
        raise RunError(f"a cell failed with {error.ename}: {error.evalue}\n{error.traceback}") from None


def values(notebook: Any, expressions: Sequence[str], folder: Path) -> dict[str, float]:
    """The value of each expression after the last cell of a chapter: the numbers of its prose."""
    asking = "\n".join(
        ["import json", f"print(json.dumps({{text: float(eval(text)) for text in {list(expressions)!r}}}))"]
    )
    asked = nbformat.from_dict(notebook)
    asked.cells = [*notebook.cells, nbformat.v4.new_code_cell(asking)]
    answered: dict[str, float] = json.loads(executed(asked, folder).cells[-1].outputs[0].text)
    return answered


def cleaned(notebook: Any) -> Any:
    """The executed notebook in the form that is saved.

    Raises InputError where a cell wrote to stderr, such as a warning.
    """
    state = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT if key in cell.metadata})
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise InputError.of("cell", cell.source, f"wrote to stderr: {output.text}", "cure what it warns of")
        cell.outputs = [kept for output in cell.outputs for kept in _plain(output, state)]
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def _plain(output: Any, state: Mapping[str, Any]) -> list[Any]:
    """The output itself, or for a widget its figures with their sentences and tables."""
    model = output.get("data", {}).get(VIEW, {}).get("model_id")
    if model is None:
        return [output]
    return [nbformat.v4.new_output("display_data", data) for data in _drawn(model, state)]


def _drawn(model: str, state: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The figures that a widget and its children show, and the sentences under the figures."""
    held = state.get(model, {}).get("state", {})
    for output in held.get("outputs", ()):
        yield output["data"]
    text = held.get("value")
    if isinstance(text, str) and "distsim-summary" in text:
        yield {"text/html": text}
    for child in held.get("children", ()):
        yield from _drawn(str(child).removeprefix(REFERENCE), state)


def save(path: Path) -> float:
    """Executes one chapter and saves it in place. Returns the seconds that execution took."""
    start = time.perf_counter()
    done = cleaned(executed(read(path), path.parent))
    seconds = time.perf_counter() - start
    write_text(path, nbformat.writes(done) + "\n")
    return seconds


def main(numbers: Sequence[str]) -> int:
    """Executes and saves the chapters. Returns the exit code."""
    name = "course"
    try:
        for path in chapters(course_folder(), numbers):
            name = path.name
            seconds = save(path)
            print(f"{name}: {seconds:.0f} s, {path.stat().st_size / 1e3:.0f} kB", flush=True)
    except DistsimError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
