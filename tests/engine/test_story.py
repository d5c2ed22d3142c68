"""The stories read as their docstrings promise: each phase named there is a comment where the code does it."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest

from distsim.engine import ddp, flexrr, peers, pipeline, server

STORIES = (peers, ddp, pipeline, server, flexrr)


def promised(story: ModuleType) -> set[str]:
    """The links of "a -> b -> c" in the module's docstring, and the terms of its indented list."""
    text = story.__doc__ or ""
    chains = re.findall(r"[\w-]+(?: -> [\w-]+)+", text)
    terms = re.findall(r"^ *([a-z-]+(?: [a-z]+)?)  +\S", text, re.MULTILINE)
    return {phase for chain in chains for phase in chain.split(" -> ")} | set(terms)


def commented(story: ModuleType) -> set[str]:
    """The phases of comments such as "# push", "# wait, pull" and "# pull: why here"."""
    comments = re.findall(r"^ +# ([a-z][a-z, -]*?)(?:: .*)?$", inspect.getsource(story), re.MULTILINE)
    return {phase for comment in comments for phase in re.split(r", (?:and )?", comment)}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.rpartition(".")[2])
def test_phases_of_the_docstring_are_comments_of_the_code(story: ModuleType) -> None:
    assert promised(story)
    assert commented(story) == promised(story)
