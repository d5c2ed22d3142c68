"""Wrong solutions made from the right solutions of a lab, each with one change and a name that stays."""

from __future__ import annotations

import ast
import difflib
import hashlib
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from distsim.errors import InputError
from distsim.grading.lab import Lab
from distsim.grading.power.mutators import GENERAL, Mutator
from distsim.grading.power.source import MODULE, Source, restore, sources
from distsim.grading.power.trade_mutators import TRADE

FEWEST = 120  # mutants of a lab, if so many can be made
MOST_TRADE = 120  # mutants of the trade: more would take hours
FEWEST_GENERAL = 40  # beside those of the trade


@dataclass(frozen=True)
class Mutant:
    """A wrong solution.

    key: file, function, number of the changed statement in that function, and mutator, such as
    "solution:ring_all_reduce:3:swap_arguments"; edits of other functions leave it as it is. line: the changed statement
    before the change. changed: the file after the change; helper: code that follows it. trade: whether the
    change is one of the trade.
    """

    key: str
    line: str
    changed: str
    helper: str
    trade: bool

    @property
    def text(self) -> str:
        """The whole tasks.py."""
        return f"{self.changed}\n\n{self.helper}" if self.helper else f"{self.changed}\n"

    @property
    def file(self) -> str:
        """The name of the right solution, without .py."""
        return self.key.split(":")[0]

    @property
    def function(self) -> str:
        """The changed function or method; "module" where the change concerns the whole file."""
        return self.key.split(":")[1]

    @property
    def operator(self) -> str:
        """The name of the mutator."""
        return self.key.split(":")[3].partition("#")[0]

    def diff(self, source: Source) -> str:
        """The change, as a unified diff of the files as Python prints them."""
        before, after = source.plain.splitlines(), self.changed.splitlines()
        return "\n".join(difflib.unified_diff(before, after, f"{self.file}.py", self.key, n=1, lineterm=""))


def mutants(source: Source, mutators: Sequence[Mutator]) -> Iterator[Mutant]:
    """All mutants of one right solution, each text once, in the order of the file; none that is no Python."""
    seen, counts = {source.plain}, dict[str, int]()
    for place in source.places():
        for mutator in mutators:
            for replacement in mutator.make(place):
                key = f"{source.name}:{place.function}:{place.number}:{mutator.name}"
                if place.function == MODULE:
                    text = ast.unparse(replacement)  # type: ignore[arg-type]
                else:
                    kept = place.kept()
                    place.put(replacement)
                    text = ast.unparse(source.tree)
                    restore(kept)
                if text in seen or not _is_python(text):
                    continue
                seen.add(text)
                counts[key] = counts.get(key, 0) + 1
                name = key if counts[key] == 1 else f"{key}#{counts[key]}"
                yield Mutant(name, place.line, text, mutator.helper, mutator.trade)


def all_mutants(lab: Lab) -> dict[str, Mutant]:
    """Every mutant of a lab by its key: several hundred. Raises InputError if the lab has no solution."""
    found = [mutant for source in sources(lab) for mutant in mutants(source, [*TRADE, *GENERAL])]
    return {mutant.key: mutant for mutant in found}


def known(key: str, made: Mapping[str, Mutant], asked: str) -> Mutant:
    """The mutant of that key. asked: where the key stands. Raises InputError, with the nearest keys, if there is none.

    >>> known("solution:f:1:drop", {"solution:f:1:no_copy": 1}, "--mutant")
    Traceback (most recent call last):
    distsim.errors.InputError: --mutant = 'solution:f:1:drop': is the key of no mutant. Cure: take solution:f:1:no_copy
    """
    if key in made:
        return made[key]
    near = difflib.get_close_matches(key, made) or ["a key that `distsim lab power` prints"]
    raise InputError.of(asked, key, "is the key of no mutant", f"take {' or '.join(near)}")


def selected(found: Collection[Mutant]) -> list[Mutant]:
    """The mutants that a lab is tried with: of the trade and general ones, both spread over functions and mutators.

    Which ones these are depends on their names alone, so it stays the same until the functions themselves change.
    """
    trade, general = (spread([mutant for mutant in found if mutant.trade == kind]) for kind in (True, False))
    trade = trade[:MOST_TRADE]
    return [*trade, *general[: max(FEWEST_GENERAL, FEWEST - len(trade))]]


def spread(found: Sequence[Mutant]) -> list[Mutant]:
    """Mutants in an order in which functions and mutators take turns, and which depends on their keys alone."""
    turns: dict[str, int] = {}
    places = []
    for mutant in sorted(found, key=_drawn):
        kind = f"{mutant.file}:{mutant.function}:{mutant.operator}"
        turns[kind] = turns.get(kind, 0) + 1
        places.append((turns[kind], _drawn(mutant), mutant))
    return [mutant for *_, mutant in sorted(places, key=lambda one: one[:2])]


def _drawn(mutant: Mutant) -> str:
    return hashlib.sha256(mutant.key.encode()).hexdigest()


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of what mutants do, such as `0 is None`
            compile(text, "tasks.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
