"""`distsim course` in a real browser: the syllabus as it reads, and from there to a chapter, a word and a lab."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.test_course_command import free_port, read_until, started, wait_for

pytestmark = [pytest.mark.chromium, pytest.mark.more, pytest.mark.timeout(240)]
SYLLABUS = Path(__file__).parents[2] / "course" / "README.md"


def test_the_course_opens_at_its_syllabus_and_its_links_lead_on(page: Any, problems: list[str], tmp_path: Path) -> None:
    port = free_port()
    with started("--port", str(port), home=tmp_path) as process:
        printed = read_until(process, "token=")
        assert process.stdout is not None
        threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would hold the server
        address = re.search(rf"http://127\.0\.0\.1:{port}/lab/tree/course/README\.md\?token=\w+", printed)
        assert address, printed
        wait_for(port)
        page.goto(address[0])
        syllabus = page.locator(".jp-MarkdownViewer").first
        syllabus.get_by_role("heading", name="How will a distributed training run behave?").wait_for()
        rows = re.findall(r"^\| \[?\d\d", SYLLABUS.read_text("utf-8"), re.MULTILINE)
        assert syllabus.locator("tbody tr").count() == len(rows) >= 13

        syllabus.get_by_role("link", name="00 tour").click()
        page.locator(".jp-Notebook h1", has_text="how long does one step of four workers take?").wait_for()
        page.locator(".jp-Notebook mjx-container").first.wait_for(state="attached")
        assert page.locator(".jp-Notebook .jp-OutputArea-output").count() == 0, "the guess comes first"

        page.locator(".jp-Notebook").get_by_role("link", name="straggler", exact=True).first.click()
        word = page.locator(".jp-MarkdownViewer:visible h2", has_text=re.compile("^straggler"))
        word.wait_for()
        page.wait_for_function(
            "heading => { const box = heading.getBoundingClientRect(); return box.top > 0 && box.top < innerHeight; }",
            arg=word.element_handle(),
        )
        page.locator(".lm-TabBar-tab", has_text="README.md").click()
        page.locator(".jp-MarkdownViewer:visible").get_by_role("link", name="06", exact=True).click()
        page.wait_for_url("**/labs/06_backup_workers/lab.ipynb")
        page.locator(".jp-DirListing-item", has_text="tasks.py").wait_for()  # at the left is the lab's folder
        assert not problems, problems
