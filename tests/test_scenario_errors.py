"""Scenarios that are wrong: each message quotes the offending value, says the rule and ends in a cure."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from distsim.errors import DistsimError, InputError, NotAvailableYetError, RunError
from distsim.policies import POLICIES
from distsim.scenario import Scenario

GOOD: dict[str, Any] = {
    "steps": 50,
    "cluster": {"workers": 4, "bandwidth": "1 Gbit/s", "latency": "100 us"},
    "compute": {"mean": "50 ms"},
    "workload": {"gradient": "4 MiB"},
    "policy": {"kind": "backup", "backups": 1},
    "communication": {"kind": "parameter_server"},
}
ABSENT = object()


def changed(**changes: object) -> dict[str, Any]:
    """The good table with some keys set or, where ABSENT, taken out; "policy__backups" is a key of [policy]."""
    table = copy.deepcopy(GOOD)
    for path, value in changes.items():
        *outer, key = path.split("__")
        inner = table
        for name in outer:
            inner = inner.setdefault(name, {})
        if value is ABSENT:
            del inner[key]
        else:
            inner[key] = value
    return table


# The change, what the message must quote (the offending value), and the rule.

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown table": (changed(learning={"key": 1}), "learning = {'key': 1}", "is not a key of the top level"),
    "an unknown empty table": (changed(learning={}), "learning = {}", "is not a key of the top level"),
    "a key of a policy at the top": (
        changed(backups=1),
        "backups = 1",
        "is not a key of the top level. Cure: write policy.backups",
    ),
    "a key of a policy at the top that has another name in Python": (
        changed(bucket="1 MiB"),
        "bucket",
        "is not a key of the top level. Cure: write policy.bucket",
    ),
    "a key of a table at the top": (
        changed(mean="1 ms"),
        "mean",
        "is not a key of the top level. Cure: write compute.mean",
    ),
    "unknown key at the top": (changed(stesp=1), "stesp = 1", "is not a key of the top level. Cure: write steps"),
    "unknown key that is like a refused one": (
        changed(learnin={}),
        "learnin = {}",
        "Cure: remove it; the keys are name, ",
    ),
    "unknown key in a table": (
        changed(cluster__worker=4),
        "cluster.worker = 4",
        "is not a key of the table [cluster]. Cure: write workers",
    ),
    "unknown key in a nic": (
        changed(cluster__nic={"1": {"upp": "1 B/s"}}),
        "cluster.nic.1.upp = '1 B/s'",
        "Cure: write up",
    ),
    "unknown key in pauses": (
        changed(compute__pauses={"probability": 0.1, "duration": "1 s", "often": 3}),
        "often = 3",
        "is not a key",
    ),
    "unknown key of a policy": (
        changed(policy__cancle=True),
        "cancle = True",
        "is not a key of [policy] with kind = 'backup'. Cure: write cancel",
    ),
    "a key of another policy": (changed(policy={"kind": "synchronous", "backups": 1}), "backups = 1", "is not a key"),
    "missing key": (changed(steps=ABSENT), "steps", "is missing. Cure: write such as steps = 50 above the tables"),
    "missing key of a table": (
        changed(cluster__bandwidth=ABSENT),
        "cluster.bandwidth",
        'is missing. Cure: write such as bandwidth = "10 Gbit/s" in [cluster]',
    ),
    "missing table": (
        changed(workload=ABSENT),
        "workload",
        'is missing. Cure: write [workload] on a line of its own, and below it such as gradient = "4 MiB"',
    ),
    "missing backups": (
        changed(policy__backups=ABSENT),
        "policy.backups",
        "is missing. Cure: write such as backups = 1 in [policy]",
    ),
    "missing gradient": (changed(workload={}), "workload.gradient", "is missing"),
    "missing kind": (changed(policy={}), "policy", "needs a kind, one of synchronous, backup"),
    "missing duration": (changed(compute__pauses={"probability": 0.1}), "compute.pauses.duration", "is missing"),
    "negative bandwidth": (
        changed(cluster__bandwidth="-1 Gbit/s"),
        "cluster.bandwidth = '-1 Gbit/s'",
        "must be above 0",
    ),
    "no bandwidth": (changed(cluster__bandwidth="0 B/s"), "cluster.bandwidth = '0 B/s'", "must be above 0"),
    "negative nic": (
        changed(cluster__nic={"0": {"down": "-1 B/s"}}),
        "cluster.nic.0.down = '-1 B/s'",
        "must be above 0",
    ),
    "negative latency": (changed(cluster__latency="-1 us"), "cluster.latency = '-1 us'", "must be at least 0"),
    "negative gradient": (changed(workload__gradient="-1 B"), "workload.gradient = '-1 B'", "must be at least 0"),
    "no time at all": (changed(compute__mean="0 s"), "compute.mean = '0 s'", "must be above 0"),
    "no time in parts": (changed(compute={"fixed": "0 s", "per_sample": "0 s"}), 'fixed = "0 s"', "must be above 0"),
    "no unit": (changed(cluster__bandwidth="10"), "cluster.bandwidth = '10'", "has no unit"),
    "a bare number": (changed(cluster__latency=1), "cluster.latency = 1", "has no unit"),
    "another unit": (changed(compute__mean="50 MB"), "compute.mean = '50 MB'", "unit of another kind than second"),
    "an unknown unit": (
        changed(compute__mean="50 blinks"),
        "compute.mean = '50 blinks'",
        "unit that distsim does not know",
    ),
    "a comma": (changed(cluster__bandwidth="1,5 Gbit/s"), "cluster.bandwidth = '1,5 Gbit/s'", "comma"),
    "not finite": (changed(cluster__latency="inf s"), "cluster.latency = 'inf s'", "is not finite"),
    "not a number": (
        changed(compute={"distribution": "lognormal", "mean": "1 s", "cv": math.nan}),
        "compute.cv = nan",
        "must be a finite number. Cure: write one such as 0.3",
    ),
    "a calculation": (changed(cluster__bandwidth="2*3 Gbit/s"), "'2*3 Gbit/s'", "is not a number with a unit"),
    "a character that is none": (changed(cluster__bandwidth="1 Gbit/s\0"), "'1 Gbit/s\\x00'", "is not a number with"),
    # Sizes that no run has
    "too long a name": (changed(name="x" * 201), "name = 'xx", "must have at most 200 characters"),
    "too many steps": (changed(steps=10**9 + 1), "steps = 1000000001", "must be at most 1000000000"),
    "too many workers": (changed(cluster__workers=10**8), "cluster.workers = 100000000", "must be at most 1000000"),
    "too large a seed": (changed(seed=2**63), "seed = 9223372036854775808", "must be at most 9223372036854775807"),
    "a count of 400 digits": (changed(workload__batch=10**400), "workload.batch = 1000", "must be at most 1000000000"),
    "a count of 5000 digits": (changed(workload__batch=10**5000), "(a number of thousands of", "must be at most"),
    "too large a time": (
        changed(compute__mean="1e308 s"),
        "compute.mean = '1e308 s'",
        "must be at most 1000000000000 s",
    ),
    "too slow a link": (changed(cluster__bandwidth="1e-320 Gbit/s"), "'1e-320 Gbit/s'", "must be at least 0.001 B/s"),
    "too fast a link": (changed(cluster__bandwidth="1e300 B/s"), "'1e300 B/s'", "must be at most 1000000000 GB/s"),
    "too large a gradient": (changed(workload__gradient="1e16 B"), "'1e16 B'", "must be at most 1000000 GB"),
    "a quantity of 400 digits": (changed(compute__mean="9" * 400 + " s"), "compute.mean", "is too long for a number"),
    "cv beyond all spread": (
        changed(compute={"distribution": "lognormal", "mean": "1 s", "cv": 1e200}),
        "compute.cv = 1e+200",
        "must be at most 1000.0",
    ),
    "cv of next to nothing": (
        changed(compute={"distribution": "uniform", "mean": "1 s", "cv": 1e-320}),
        "compute.cv = 1e-320",
        "must be at least 1e-09",
    ),
    "too slow a worker": (changed(compute__slow={"1": 1e7}), "slow.1 = 10000000.0", "must be at most 1000000.0"),
    "too many layers": (changed(workload__layers=10**6), "workload.layers = 1000000", "must be at most 100000"),
    "too much at once": (changed(steps=10**9), "steps = 1000000000 on 4 workers", "of memory, and this machine has"),
    "too large a cost": (changed(cost={"price_per_hour": 1e300}), "cost.price_per_hour = 1e+300", "must be at most"),
    "a rank of 5000 digits": (changed(compute__slow={"9" * 5000: 2.0}), "'99", "must be a whole number"),
    "nodes that are not full": (
        changed(
            policy={"kind": "synchronous"},
            communication={"kind": "hierarchical"},
            cluster__nodes={"per_node": 3, "bandwidth": "1 GB/s", "latency": "1 us"},
        ),
        "cluster.nodes.per_node = 3",
        "must divide the 4 workers",
    ),
    "no workers": (changed(cluster__workers=0), "cluster.workers = 0", "must be at least 1"),
    "no steps": (changed(steps=0), "steps = 0", "must be at least 1"),
    "negative seed": (changed(seed=-1), "seed = -1", "must be at least 0"),
    "as many backups as workers": (changed(policy__backups=4), "backups = 4", "must be fewer than the 4 workers"),
    "more backups than workers": (changed(policy__backups=9), "backups = 9", "must be fewer than the 4 workers"),
    "negative backups": (changed(policy__backups=-1), "policy.backups = -1", "must be at least 0"),
    "a slow worker that is not there": (changed(compute__slow={"4": 2.0}), "worker 4", "workers count 0 to 3"),
    "a factor of 0": (changed(compute__slow={"1": 0.0}), "compute.slow.1 = 0.0", "must be at least 1e-06"),
    "a rank with a leading zero": (changed(compute__slow={"01": 2.0}), "'01'", "must be a whole number"),
    "a nic that is not there": (changed(cluster__nic={"4": {"up": "1 B/s"}}), "names 4", "workers count 0 to 3"),
    "a nic by another name": (changed(cluster__nic={"head": {"up": "1 B/s"}}), "names 'head'", "workers count 0 to 3"),
    "a probability above 1": (
        changed(compute__pauses={"probability": 1.5, "duration": "1 s"}),
        "compute.pauses.probability = 1.5",
        "must be at most 1",
    ),
    "text for a number": (changed(steps="50"), "steps = '50'", "must be a whole number"),
    "a fraction for a count": (changed(cluster__workers=2.5), "cluster.workers = 2.5", "must be a whole number"),
    "true for a count": (changed(seed=True), "seed = True", "must be a whole number"),
    "a number for a text": (changed(name=5), "name = 5", "must be a text"),
    "text for a fraction": (changed(compute__slow={"1": "2"}), "compute.slow.1 = '2'", "must be a number"),
    "text for yes or no": (changed(policy__cancel="yes"), "policy.cancel = 'yes'", "must be true or false"),
    "a number for a table": (changed(cluster=5), "cluster = 5", "must be a table. Cure: write [cluster]"),
    "a number for an inner table": (changed(cluster__nic={"1": 3}), "cluster.nic.1 = 3", "Cure: write [cluster.nic.1]"),
    "a number for a policy": (changed(policy=3), "policy = 3", "needs a kind"),
    "a list for a kind": (changed(policy__kind=["backup"]), "kind = ['backup']", "is not a policy"),
    "an unknown policy": (
        changed(policy__kind="bakcup"),
        "kind = 'bakcup'",
        "is not a policy. Cure: take one of synchronous, backup",
    ),
    "an unknown distribution": (
        changed(compute__distribution="gauss"),
        "compute.distribution = 'gauss'",
        "must be 'constant', ",
    ),
    "an unknown collective": (changed(communication__kind="star"), "communication.kind = 'star'", "must be 'ring', "),
    "an unknown way to send": (
        changed(communication__sends="late"),
        "communication.sends = 'late'",
        "must be 'rendezvous' or 'eager'",
    ),
    "cv where it changes nothing": (changed(compute__cv=0.3), "cv = 0.3", "would change nothing"),
    "cv missing": (changed(compute__distribution="lognormal"), '"lognormal"', "needs cv"),
    "cv too large for uniform": (
        changed(compute={"distribution": "uniform", "mean": "1 s", "cv": 0.6}),
        "cv = 0.6",
        "must be at most 0.5774",
    ),
    "cv too large for shifted": (
        changed(compute={"distribution": "shifted_exponential", "mean": "1 s", "cv": 1.1}),
        "cv = 1.1",
        "must be at most 1",
    ),
    "alpha where it does not belong": (
        changed(compute__alpha=2.0),
        "alpha = 2.0",
        "Cure: remove it, or write distribution as pareto",
    ),
    "alpha without a mean": (
        changed(compute={"distribution": "pareto", "mean": "1 s", "alpha": 1.0}),
        "compute.alpha = 1.0",
        "must be above 1",
    ),
    "alpha and cv": (
        changed(compute={"distribution": "pareto", "mean": "1 s", "alpha": 3.0, "cv": 0.5}),
        '"pareto"',
        "either cv or alpha",
    ),
    "neither alpha nor cv": (
        changed(compute={"distribution": "pareto", "mean": "1 s"}),
        '"pareto"',
        "either cv or alpha",
    ),
    "two means": (
        changed(compute__fixed="5 ms"),
        "both a mean and fixed",
        "either given or fixed + per_sample x batch",
    ),
    "no mean": (changed(compute={}), "neither a mean", "either given or fixed + per_sample x batch"),
    "a file that is not replayed": (changed(compute__file="times.csv"), "file = 'times.csv'", '"replay" alone'),
    "a replay without a file": (changed(compute={"distribution": "replay"}), '"replay"', "needs a file"),
    "a replay with a mean": (
        changed(compute={"distribution": "replay", "file": "x", "mean": "1 s"}),
        '"replay"',
        "would change nothing",
    ),
    "a replay of no such file": (
        changed(compute={"distribution": "replay", "file": "no.csv"}),
        "file = 'no.csv'",
        "cannot be read",
    ),
    "backup over a ring": (
        changed(communication__kind="ring"),
        "communication.kind = 'ring'",
        "makes no sense with policy.kind = 'backup'. Cure: take parameter_server",
    ),
    "a server's way for a ring": (
        changed(policy={"kind": "synchronous"}, communication={"kind": "ring", "receive": "fifo"}),
        "communication.receive = 'fifo'",
        "has none",
    ),
    "servers for a ring": (
        changed(policy={"kind": "synchronous"}, communication={"kind": "ring", "servers": 2}),
        "communication.servers = 2",
        "has none",
    ),
    "too many colocated servers": (
        changed(communication={"kind": "parameter_server", "servers": 6, "colocated": True}),
        "communication.servers = 6",
        "must be at most the 4 workers if colocated",
    ),
    "a mesh of other workers": (
        changed(policy={"kind": "mesh", "data": 3, "tensor": 2}, communication={"kind": "ring"}),
        "policy.data = 3 times policy.tensor = 2 make 6 workers, and cluster.workers = 4",
        "Cure: write data = 2, or 6 workers",
    ),
    "a mesh that no number of groups makes": (
        changed(policy={"kind": "mesh", "data": 1, "tensor": 3}, communication={"kind": "ring"}),
        "make 3 workers, and cluster.workers = 4",
        "Cure: write 3 workers",
    ),
    "a mesh around a tree": (
        changed(
            policy={"kind": "mesh", "data": 2, "tensor": 2}, workload__activation="1 MB", communication={"kind": "tree"}
        ),
        "communication.kind = 'tree'",
        "Cure: take ring",
    ),
    "stage 4 of a mesh": (
        changed(policy={"kind": "mesh", "data": 2, "tensor": 2, "stage": 4}, communication={"kind": "ring"}),
        "policy.stage = 4",
        "",
    ),
    "several servers for FlexRR": (
        changed(policy={"kind": "flexrr"}, communication={"kind": "parameter_server", "servers": 2}),
        "communication.servers = 2",
        "which has one server",
    ),
    "several servers for cancelling backups": (
        changed(
            policy={"kind": "backup", "backups": 1, "cancel": True},
            communication={"kind": "parameter_server", "servers": 2},
        ),
        "communication.servers = 2",
        "and cancel = true, which has one server",
    ),
    "a ring for asynchronous updates": (
        changed(policy={"kind": "asynchronous"}, communication={"kind": "ring"}),
        "communication.kind = 'ring'",
        "makes no sense with policy.kind = 'asynchronous'. Cure: take parameter_server",
    ),
    "hierarchical without nodes": (
        changed(policy={"kind": "synchronous"}, communication={"kind": "hierarchical"}),
        "'hierarchical'",
        "needs nodes",
    ),
    "a worker that shares its node's NIC": (
        changed(
            cluster__nodes={"per_node": 2, "bandwidth": "1 GB/s", "latency": "1 us", "nic_per": "node"},
            cluster__nic={"3": {"up": "1 MB/s"}},
        ),
        "worker 3",
        "Cure: name worker 2",
    ),
    "more helpers than others": (
        changed(policy={"kind": "flexrr", "group": 5}),
        "group = 5",
        "must be fewer than the 4",
    ),
    "a pipeline without activations": (
        changed(policy={"kind": "pipeline", "micro_batches": 4}, communication={"kind": "ring"}),
        "workload.activation",
        "is missing",
    ),
    "more steps to add up than there are": (
        changed(steps=5, policy={"kind": "ddp", "accumulate": 6}, communication={"kind": "ring"}),
        "policy.accumulate = 6",
        "must be at most steps = 5",
    ),
    "a gradient besides a model": (changed(workload__model="mlp"), "gradient", "which has one of 19240 bytes"),
    "an unknown model": (changed(workload={"model": "resnet"}), "workload.model = 'resnet'", "must be 'mlp', 'cnn' or"),
    "a width for digits": (changed(workload={"model": "cnn", "width": 8}), "width = 8", 'model = "transformer" alone'),
    "a width that heads cannot share": (
        changed(workload={"model": "transformer", "width": 6}),
        "workload.width = 6",
        "multiple of 4",
    ),
    "another number of layers": (
        changed(workload={"model": "mlp", "layers": 3}),
        "layers = 3",
        "which has 2",
    ),
    "a model that is no text": (changed(workload={"model": ["mlp"]}), "workload.model", "must be"),
    "a server's nic for a ring": (
        changed(
            policy={"kind": "synchronous"}, communication={"kind": "ring"}, cluster__nic={"server": {"up": "1 B/s"}}
        ),
        "cluster.nic",
        "has none",
    ),
}


@pytest.mark.parametrize(("table", "quoted", "rule"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_with_its_cure(table: dict[str, Any], quoted: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario.of(table, source="bad.toml")
    message = str(caught.value)
    assert message.startswith("bad.toml: ")
    assert quoted in message
    assert rule in message
    assert "Cure: " in message
    assert "\n" not in message


def test_the_good_table_of_these_tests_is_good() -> None:
    assert Scenario.of(GOOD).steps == 50


def test_every_problem_is_listed() -> None:
    with pytest.raises(InputError) as caught:
        Scenario.of(changed(steps=0, cluster__workers="two", compute__mean="1"), source="bad.toml")
    head, *lines = str(caught.value).splitlines()
    assert head == "bad.toml has 3 problems:"
    assert [line.split(" =")[0].strip() for line in lines] == ["steps", "cluster.workers", "compute.mean"]
    assert all("Cure: " in line for line in lines)


def required(model: type[BaseModel], table: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """All keys that must be given, those of inner tables and of policies too."""
    for name, field in model.model_fields.items():
        key = f"{table}{field.alias or name}"
        if field.is_required():
            yield key, field
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from required(inner, f"{key}.")


def test_every_key_that_must_be_given_has_an_example_that_is_good() -> None:
    keys = dict(required(Scenario))
    assert {"steps", "cluster.nodes.per_node", "compute.pauses.duration", "failures.checkpoint_every"} <= keys.keys()
    for key, field in keys.items():
        assert field.examples, key
    table = {key: keys[key].examples[0] for key in keys if "." not in key}
    assert Scenario.of(table).steps == 50
    for key, field in keys.items():
        if key.startswith("cluster.") and key.count(".") == 1:
            assert Scenario.of(table | {"cluster": table["cluster"] | {key.partition(".")[2]: field.examples[0]}})


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_shows_an_example_of_what_it_lacks(kind: str) -> None:
    communication = {"kind": "ring" if POLICIES[kind].server == "none" else "parameter_server"}
    table = changed(policy={"kind": kind}, communication=communication, workload__activation="1 MiB")
    for _ in range(3):
        try:
            assert Scenario.of(table).policy.kind == kind
        except InputError as error:
            cure = str(error).partition("Cure: write such as ")[2]
            key, value = cure.removesuffix(" in [policy]").split(" = ")
            table["policy"][key] = json.loads(value)
        else:
            return
    pytest.fail(f"the cures of {kind} cure nothing")


TOML_ERRORS = {
    "a quantity without quotes": ("mean = 50 ms", 1, 'put text and quantities in quotes, such as mean = "50 ms"'),
    "a comment behind it": ("mean = 50 ms # each", 1, 'such as mean = "50 ms"'),
    "an open quote": ('steps = 1\nmean = "50 ms\n', 2, "close every quote and bracket on that line"),
    "an open bracket": ("steps = [1, 2\n[cluster]\n", 2, "close the bracket on that line, or on the one before"),
    "an open table": ("[cluster\nworkers = 4", 1, "write a table such as [cluster] on a line of its own"),
    "no value": ("steps =", 1, "write a value, such as steps = 50"),
    "no key": ("steps", 1, "write key = value, such as steps = 50"),
    "a zero in front": ("steps = 050", 1, "write the number without a zero in front"),
    "a key twice": ("steps = 1\nsteps = 2", 2, "write each key and each table once"),
    "a table twice": ("[policy]\n[policy]", 2, "write each key and each table once"),
    "JSON": ('{"steps": 50}', 1, "write keys such as steps = 50 and tables such as [cluster], not JSON"),
}


@pytest.mark.parametrize(("text", "line", "cure"), TOML_ERRORS.values(), ids=TOML_ERRORS)
def test_a_slip_in_toml_is_shown_with_its_line_and_cure(text: str, line: int, cure: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario.loads(text, source="bad.toml")
    message = str(caught.value)
    assert message.startswith(f"bad.toml, line {line} = {text.splitlines()[line - 1]!r}: is not TOML (")
    assert cure in message.partition("Cure: ")[2]


@pytest.mark.parametrize(
    ("content", "quoted", "rule"),
    [
        (b"", "''", "is empty"),
        (b"# nothing but a comment\n", "'# nothing but a comment", "is empty"),
        (bytes([0, 159, 146, 150, 255]), "scenario file = ", "is not a text file (byte 1 is not UTF-8)"),
        (b"\x7fELF\x02\x01\x01\x00", "", "is not TOML"),
        (b"steps = \n", "line 1", "is not TOML"),
        (b"steps = 1\nsteps = 2\n", "line 2", "is not TOML"),
        (b'{"steps": 50}', "line 1", "is not TOML"),
    ],
    ids=["empty", "comments", "binary", "program", "no value", "twice", "JSON"],
)
def test_a_file_that_is_no_scenario(tmp_path: Path, content: bytes, quoted: str, rule: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Scenario.load(path)
    message = str(caught.value)
    for part in (str(path), quoted, rule, "Cure: "):
        assert part in message


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError) as caught:
            Scenario.load(path)
        assert repr(str(path)) in str(caught.value)
        assert "cannot be read" in str(caught.value)
        assert "Cure: " in str(caught.value)


def test_errors_name_their_exit_code() -> None:
    assert (InputError.exit_code, RunError.exit_code, NotAvailableYetError.exit_code) == (2, 3, 2)
    assert issubclass(InputError, DistsimError)
    assert issubclass(InputError, ValueError)


def test_a_long_value_is_shortened_in_the_message() -> None:
    for table in (changed(steps="5" * 1000), changed(cluster__latency="5" * 1000)):
        with pytest.raises(InputError) as caught:
            Scenario.of(table)
        assert len(str(caught.value)) < 250
