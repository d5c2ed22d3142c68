"""The files that GitHub, pre-commit and citation tools read: they parse, and what they name is there."""

from __future__ import annotations

import re

import pytest
import yaml

import distsim
from tests.pages import ROOT

FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert citation["version"] == distsim.__version__
    assert re.search(
        rf"^## {re.escape(distsim.__version__)} ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )


def test_the_workflow_calls_what_is_there() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    commands = " ".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert ".ci/run" in commands
    assert set(jobs["others"]["strategy"]["matrix"]["os"]) == {"macos-latest", "windows-latest"}
    named = re.findall(r"(?<!\S)tests/[\w./]+", commands)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_hooks_are_the_tools_of_make_lint() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repository["repo"] == "local"
    lint = (ROOT / "Makefile").read_text("utf-8").partition("\nlint:")[2]
    for hook in repository["hooks"]:
        assert f"$(BIN)/{hook['entry'].removeprefix('.venv/bin/')}" in lint


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_forms_ask_and_each_answer_has_a_name(form: object) -> None:
    content = yaml.safe_load(form.read_text("utf-8"))  # type: ignore[attr-defined]
    assert {"name", "description", "body"} <= set(content)
    names = [field["id"] for field in content["body"]]
    assert len(names) == len(set(names)) >= 3
    assert all(field["attributes"]["label"] for field in content["body"])
