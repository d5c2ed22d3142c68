"""The errors of a rule's author. The simulator and the real server raise the same ones."""

from __future__ import annotations

from distsim.errors import InputError


def wrong_version(worker: int, step: int, made: int, version: int) -> InputError:
    """The rule made a version that does not follow `version`, the newest."""
    return _error(worker, step, f"made version {made}", f"version {version + 1} comes next", "count on from it")


def wrong_answer(worker: int, step: int, answered: int, answer: int, version: int) -> InputError:
    """The rule answered a worker with another version than `version`, the newest."""
    what = f"answered worker {answered} with version {answer}"
    return _error(worker, step, what, f"the server holds {version}", "answer with that")


def unasked_answer(worker: int, step: int, answered: int) -> InputError:
    """The rule answered a worker that has not pushed, and the rule does not cancel."""
    cure = "answer each gradient once, or give the rule an attribute cancel = True"
    return _error(worker, step, f"answered worker {answered}", "that worker waits for no answer", cure)


def no_answer(worker: int, step: int, made: int, last_version: int) -> InputError:
    """The rule leaves every worker without an answer, so the run cannot go on."""
    what = f"made {made} of {last_version} updates"
    return _error(
        worker, step, what, "every worker waits and nothing is on its way", "answer every gradient in the end"
    )


def no_update(worker: int, step: int, gradients: int) -> InputError:
    """The rule goes on answering, and makes no update, so the run would never end."""
    what = f"has made no update since {gradients:,} gradients"
    return _error(worker, step, what, "a run ends with its last update", "make the next version in the end")


def raised(worker: int, step: int, error: Exception, place: str) -> InputError:
    """The rule raised an error at `place`, "file:line"."""
    what = f"raised {type(error).__name__} at {place}: {error}"
    return _error(worker, step, what, "needs to decide about every gradient", f"correct {place}")


def no_decision(worker: int, step: int, decision: object, fault: str) -> InputError:
    """The rule returned something that is no valid decision. fault: the condition that it breaks."""
    cure = "return Decision(version, applied, answers), as distsim.policies.rule describes it"
    return _error(worker, step, f"decided {decision!r}", fault, cure)


def _error(worker: int, step: int, what: str, rule: str, cure: str) -> InputError:
    return InputError.of(f"the rule, asked about worker {worker}'s step {step},", what, rule, cure)
