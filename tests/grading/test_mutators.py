"""Each mutator makes what it says, and every mutant of every lab is Python."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from distsim.grading.lab import Lab, all_labs
from distsim.grading.power import trade_mutators
from distsim.grading.power.evidence import TRACE
from distsim.grading.power.mutant import FEWEST, all_mutants, mutants, selected
from distsim.grading.power.mutators import GENERAL
from distsim.grading.power.source import Source
from distsim.grading.power.trade_mutators import TRADE
from distsim.testbed import rank

LABS = Path(__file__).parents[2] / "labs"
KEYS = [lab.key for lab in all_labs(LABS)]
MUTATORS = {mutator.name: mutator for mutator in (*GENERAL, *TRADE)}
HEAD = "import torch\nimport torch.distributed as dist\nSTOP = -1.0\n"
CASES = {  # for each mutator: a function's body, and lines of its mutants in place of lines of it
    "off_by_one": ("for turn in range(ranks): use(2)", ["range(ranks + 1)", "range(ranks + -1)", "use(3)", "use(1)"]),
    "swap_arguments": ("use(one, two, three)", ["use(two, one, three)", "use(one, three, two)"]),
    "swap_operands": ("return one - two", ["return two - one"]),
    "drop_statement": ("use(one)\nreturn two", ["def f(tensor):\n    return two"]),
    "drop_condition": ("if one:\n    use(two)", ["def f(tensor):\n    use(two)"]),
    "constant_for_variable": ("dist.send(tensor, dst=root)", ["dst=0", "dst=1"]),
    "other_division": ("return one // two", ["return one / two"]),
    "other_operator": ("one += two", ["one -= two", "one = two"]),
    "and_or": ("return one and two", ["return one or two", "return two", "return one"]),
    "comparison_bounds": ("return one < two <= three", ["one <= two <= three", "one < two < three"]),
    "negated_condition": ("if one == two: use(one)", ["if one != two"]),
    "other_truth": ("return True", ["return False"]),
    "drop_keyword": ("use(one, async_op=True)", ["use(one)"]),
    "drop_wait": ("work.wait()\nreturn one", ["def f(tensor):\n    return one"]),
    "late_wait": ("work.wait()\nuse(tensor)", ["_LATE.append(work)\n    use(tensor)"]),
    "immediate_wait": ("work = dist.isend(tensor, 1)", ["work = _done(dist.isend(tensor, 1))"]),
    "wait_after_the_first_round": ("work = dist.all_reduce(tensor, async_op=True)", [
        "_overlaps_once('f:1:11', dist.all_reduce(tensor, async_op=True))",
    ]),
    "one_at_a_time": ("work = dist.irecv(tensor, 1)", ["_one_at_a_time('f:1:11', lambda: dist.irecv(tensor, 1))"]),
    "blocking_for_non_blocking": ("work = dist.irecv(tensor, 1)", ["work = _blocking(dist.recv, tensor, 1)"]),
    "one_buffer_for_all": ("new = torch.empty_like(tensor)", ["_one_buffer('f:1:10', torch.empty_like(tensor))"]),
    "no_copy": ("new = tensor.clone()", ["\n    new = tensor"]),
    "rebound": ("tensor += one\ntensor.add_(two)\ntensor[:] = six", [
        "tensor = tensor + one", "tensor = tensor.add(two)", "tensor = six",
    ]),
    "captured_once": ("one = look(tensor)", ["one = _once('f:1:4', lambda: look(tensor))"]),
    "first_call_alone": ("use(tensor)", ["return _first_call_alone('f', _whole_f, given, named)"]),
    "first_turn_alone": ("for one in tensor: use(one)", [
        "in list(tensor)[:1]", "in list(tensor)[1:]", "in list(tensor)[:-1]",
    ]),
    "other_order": ("for one in sorted(tensor): use(one)", ["in reversed(list(sorted(tensor)))", "in list(tensor)"]),
    "one_type_alone": ("use(tensor)", [
        "return _in_single_precision(_whole_f, given", "return _on_contiguous_copies(_whole_f, given",
    ]),
    "other_precision": ("use(torch.float64)", ["use(torch.float32)"]),
    "other_rank": ("use(dist.get_rank())", ["use(int(__import__('os').environ['LOCAL_RANK']))"]),
    "some_worlds_alone": ("use(dist.get_world_size())", [
        "use(dist.get_world_size() // 2 * 2)", "use(1 << dist.get_world_size().bit_length() - 1)",
        "use(min(2, dist.get_world_size()))",
    ]),
    "gathered_for_some": ("dist.all_reduce(tensor)", ["_gathered_where_small(tensor)"]),
    "exchange_twice": ("use(tensor)", ["use(tensor)\n    use(tensor)"]),
    "needless_exchange": ("dist.send(tensor, 1)", [
        "dist.barrier()\n    dist.send", "dist.all_reduce(torch.zeros(1))\n    dist.send",
    ]),
    "no_finally": ("try:\n    yield\nfinally:\n    use(one)", ["yield\n    use(one)"]),
    "swapped_fields": ("dist.send(torch.cat([one, tensor]), 1)\nuse(tensor[0], tensor[1:])", [
        "torch.cat([tensor, one]), 1)\n    use(tensor[-1], tensor[:-1])",
    ]),
    "other_signal": ("dist.send(STOP, 1)", ["dist.send(-7.0, 1)"]),
}  # fmt: skip


def of(name: str, body: str, function: str = "f") -> list[str]:
    """The files that a mutator makes of a function."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = Source("other", f"{HEAD}\ndef {function}(tensor):\n{lines}")
    return [mutant.changed for mutant in mutants(source, [MUTATORS[name]])]


@pytest.mark.parametrize("name", CASES)
def test_a_mutator_makes_what_it_says(name: str) -> None:
    body, expected = CASES[name]
    made = of(name, body)
    assert len(made) == len(expected), made
    for text, part in zip(made, expected, strict=True):
        assert part in text


def test_every_mutator_has_a_case() -> None:
    assert MUTATORS.keys() - CASES.keys() == {"torchs_own_for_some"}
    assert [text.count("_torchs_own(") for text in of("torchs_own_for_some", "use(tensor)", "ring_all_reduce")] == [
        1,
        1,
    ]
    assert of("torchs_own_for_some", "use(tensor)", "scatter_it") == []
    assert of("torchs_own_for_some", "dist.all_reduce(tensor)", "all_reduce") == [], "that is the solution's own way"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("rebound", "held = 0\nheld += 1"),
        ("captured_once", "ranks = dist.get_world_size()"),
        ("off_by_one", "use(True)"),
        ("other_truth", "use(zip(one, two, strict=True))"),
        ("drop_keyword", "use(zip(one, two, strict=True))"),
        ("drop_statement", '"A text alone."'),
        ("one_type_alone", "yield tensor"),
        ("first_call_alone", "yield tensor"),
        ("exchange_twice", "tensor.work.wait()"),
        ("swapped_fields", "use(tensor[1:])"),
        ("constant_for_variable", "use(one)"),
    ],
)
def test_what_could_change_nothing_is_left_alone(name: str, body: str) -> None:
    assert of(name, body) == []


def test_a_changed_static_method_finds_the_one_that_it_stands_for() -> None:
    """A class body's names are not seen inside its methods."""
    text = "class Sum:\n    @staticmethod\n    def forward(context, values):\n        return values + 1\n"
    (mutant,) = mutants(Source("other", text), [MUTATORS["first_call_alone"]])
    space: dict[str, Any] = {}
    exec(mutant.text, space)
    whole = space["Sum"]
    assert [one.forward(None, values) for one, values in ((whole(), 1), (whole, 5))] == [2, 2], (
        "the second does nothing"
    )


def test_static_methods_are_seen_to_be_called() -> None:
    text = "class Sum:\n    @staticmethod\n    def forward(values):\n        return values + 1\n"
    space: dict[str, Any] = {"__name__": "tasks"}
    exec(text + TRACE, space)
    notes = rank.context.notes if isinstance(rank.context, rank.LocalContext) else []
    before = len(notes)
    assert space["Sum"].forward(1) == 2
    assert notes[before:] == [("called", "Sum.forward")]


def test_only_what_students_write_is_changed() -> None:
    text = (
        "LIMIT = 1\n\n\ndef f(one=2):\n    '''Three.'''\n    given = 3\n    # write\n    return given + 4\n    # end\n"
    )
    found = list(mutants(Source("solution", text), [MUTATORS["off_by_one"]]))
    assert [(one.key, one.line) for one in found] == [
        ("solution:f:2:off_by_one", "return given + 4"), ("solution:f:2:off_by_one#2", "return given + 4"),
    ]  # fmt: skip
    assert "+return given + 5" in found[0].diff(Source("solution", text)).replace("    ", "")


def test_a_key_outlives_edits_of_other_functions() -> None:
    text = "def f(a):\n    return a - 1\n"
    before = [mutant.key for mutant in mutants(Source("other", text), GENERAL)]
    after = [mutant.key for mutant in mutants(Source("other", f"def g(b):\n    return b * 7\n\n\n{text}"), GENERAL)]
    assert before == [key for key in after if ":f:" in key]


def test_the_tree_stays_as_it_was() -> None:
    source = Source("other", "def f(tensor):\n    for one in range(3):\n        dist.send(tensor, one)\n")
    before = source.plain
    assert list(mutants(source, [*GENERAL, *TRADE]))
    assert ast.unparse(source.tree) == before


def test_callers_are_found_also_by_way_of_others() -> None:
    text = "def a(): pass\ndef b(): a()\nclass C:\n    def d(self): b()\n    def e(self): self.d()\ndef f(): pass\n"
    callers = Source("other", text).callers()
    assert callers["a"] == {"a", "b", "C.d", "C.e"}
    assert callers["f"] == {"f"}


@pytest.mark.parametrize("key", [pytest.param(key, marks=() if key == KEYS[0] else pytest.mark.more) for key in KEYS])
def test_every_lab_has_mutants_of_many_kinds(key: str) -> None:
    """Each text is compiled as it is made."""
    lab = Lab.at(LABS / key)
    made = all_mutants(lab)
    assert len({mutant.text for mutant in made.values()}) == len(made)
    chosen = selected(made.values())
    assert len(chosen) >= FEWEST
    functions = {(one.file, one.function) for one in made.values()}
    assert {(one.file, one.function) for one in chosen} == functions
    assert len({one.operator for one in chosen if one.trade}) >= 6
    assert len({one.operator for one in chosen if not one.trade}) >= 6


def test_the_constants_of_trade_mutators_name_what_torch_has() -> None:
    import torch
    import torch.distributed as dist

    for name in trade_mutators.TORCHS_OWN.values():
        assert hasattr(dist, name)
    for name in (*trade_mutators.IN_PLACE, *trade_mutators.COPIES):
        assert hasattr(torch.Tensor, name)
