"""A rule that the user wrote, named as "my_rule.py:MyRule". The form of each decision is checked."""

from __future__ import annotations

import inspect
import sys
from numbers import Integral
from pathlib import Path
from typing import Any

from distsim.errors import InputError
from distsim.own_code import module_of, place_of
from distsim.policies.rule import Decision, Rule
from distsim.policies.rule_errors import no_decision, no_update, raised

ASKED = "rule"
MOST_WITHOUT_UPDATE = 1000  # gradients of each worker in a row
CURE = 'write "my_rule.py:MyRule", a Python file and a class in it'


def located(spec: str) -> str:
    """`spec` with the absolute path of its file, which is not run. Raises InputError where `spec` names no file."""
    file, separator, name = spec.rpartition(":")
    if not separator or not name.isidentifier():
        raise InputError.of(ASKED, spec, "names no class in a file", CURE)
    path = Path(file)
    if not path.is_file():
        raise InputError.of(ASKED, spec, f"there is no file {file}", CURE)
    return f"{path.resolve()}:{name}"


def load_rule(spec: str, workers: int) -> OwnRule:
    """A fresh rule, made by the class that `spec` names. A parameter `workers` of the class gets that number.

    Runs the file. Raises InputError where the file cannot be run, or has no such class.
    """
    file, _, name = located(spec).rpartition(":")
    path = Path(file)
    try:
        made = getattr(module_of(path, "rule"), name, None)
        if not isinstance(made, type):
            raise InputError.of(ASKED, spec, f"{path.name} has no class {name}", CURE)
        if not callable(getattr(made, "arrived", None)):
            needs = f"{name} has no method arrived(self, worker, step, read_version)"
            raise InputError.of(ASKED, spec, needs, "write one that returns a Decision")
        return OwnRule(made(**_arguments(spec, made, workers)), workers)
    except InputError:
        raise
    except Exception as error:
        place = place_of(error, str(path), but=__file__)
        what = f"raised {type(error).__name__} at {place}: {error}"
        raise InputError.of(ASKED, spec, what, f"correct {place}") from error


def _arguments(spec: str, made: type, workers: int) -> dict[str, int]:
    """The arguments of the class."""
    parameters = inspect.signature(made).parameters.values()
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name != "workers"
    ]
    if missing:
        rule = f"{made.__name__} cannot be made without {', '.join(missing)}"
        raise InputError.of(ASKED, spec, rule, "give each parameter but `workers` a default")
    return {"workers": workers} if any(parameter.name == "workers" for parameter in parameters) else {}


class OwnRule:
    """Asks a user's rule, and raises an error for its author where the answer is no valid decision.

    >>> from distsim.policies import Synchronous
    >>> rule = OwnRule(Synchronous().rule(workers=1), workers=1)
    >>> rule.arrived(worker=0, step=0, read_version=0)
    Decision(version=1, applied=True, answers=((0, 1),))
    """

    def __init__(self, rule: Rule, workers: int) -> None:
        self.rule = rule
        self.workers = workers
        self.cancel = bool(getattr(rule, "cancel", False))
        self._without_update = 0  # gradients since the last update

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        """The decision of the user's rule. Raises InputError, which names worker and step."""
        try:
            decision = self.rule.arrived(worker, step, read_version)
        except InputError:  # of a rule in another process, whose own `OwnRule` has told it
            raise
        except Exception as error:
            own = getattr(sys.modules.get(type(self.rule).__module__), "__file__", None)
            raise raised(worker, step, error, place_of(error, own, but=__file__)) from error
        fault = _fault(decision, self.workers)
        if fault is not None:
            raise no_decision(worker, step, decision, fault)
        self._without_update = 0 if decision.version is not None else self._without_update + 1
        if self._without_update > MOST_WITHOUT_UPDATE * self.workers:
            raise no_update(worker, step, self._without_update)
        return decision


def _fault(decision: Any, workers: int) -> str | None:
    """The fault in the form of a decision; None where there is none."""
    if not isinstance(decision, Decision):
        return "must be a Decision"
    if decision.version is not None and not _whole(decision.version):
        return "its version must be a whole number or None"
    if not isinstance(decision.applied, bool):
        return "its applied must be True or False"
    answers = decision.answers
    if not isinstance(answers, (tuple, list)) or not all(
        isinstance(pair, (tuple, list)) and len(pair) == 2 and all(map(_whole, pair)) for pair in answers
    ):
        return "its answers must be pairs (worker, version) of whole numbers"
    if any(not 0 <= worker < workers for worker, _ in answers):
        return f"its answers must go to workers 0 to {workers - 1}"
    return None


def _whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)
