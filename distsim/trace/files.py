"""Trace files. The suffix names the format: `.npz` holds columns; `.json` and `.json.gz` hold Chrome trace events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError
from distsim.files import check_writable, replaced
from distsim.trace import chrome
from distsim.trace.derived import CollectiveTransfers
from distsim.trace.tables import Table, Transfers
from distsim.trace.trace import TABLES, Trace
from distsim.trace.values import check, table_of

DERIVED = "transfers.all_reduces"
SUFFIXES = (".npz", ".json", ".json.gz")


def save(trace: Trace, path: Path) -> None:
    """Writes `trace` in the format that the suffix of `path` names."""
    match _suffix(path):
        case ".npz":
            stored = {name: _columns(getattr(trace, name)) for name in TABLES}
            arrays = {f"{name}.{key}": column for name, columns in stored.items() for key, column in columns.items()}
            with replaced(path) as stream:
                np.savez_compressed(stream, allow_pickle=False, metadata=np.array(json.dumps(trace.metadata)), **arrays)
        case ".json":
            with replaced(path) as stream:
                stream.write(chrome.dumps(trace).encode("utf-8"))
        case ".json.gz":
            with replaced(path) as stream:
                # The header has no name and no time, so the same trace gives the same bytes.
                stream.write(gzip.compress(chrome.dumps(trace).encode("utf-8"), mtime=0))


def load(path: Path) -> Trace:
    """Reads a file that `save` wrote. Raises InputError if the file holds no trace, or values a trace cannot have."""
    suffix = _suffix(path)
    try:
        trace = _load_npz(path) if suffix == ".npz" else _load_json(path, packed=suffix == ".json.gz")
        check(trace)
        return trace
    except OSError as error:
        rule = f"cannot be read ({error.strerror or error})"
    except Exception as error:  # noqa: BLE001 - on a damaged file zipfile, zlib, numpy and json raise all kinds
        rule = f"is not a trace that distsim wrote ({error or type(error).__name__})"
    raise InputError.of("trace file", str(path), rule, "name a file that --trace wrote")


def _load_json(path: Path, *, packed: bool) -> Trace:
    raw = path.read_bytes()
    return chrome.loads((gzip.decompress(raw) if packed else raw).decode("utf-8"))


def _load_npz(path: Path) -> Trace:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        absent = [name for name in _arrays(derived=DERIVED in arrays) if name not in arrays]
        if absent:
            raise ValueError(f"it lacks {', '.join(absent[:3])}")
        tables = {name: _table(name, arrays) for name in TABLES}
        return Trace(metadata=json.loads(str(arrays["metadata"])), **tables)  # type: ignore[arg-type]


def _columns(table: Table) -> dict[str, NDArray[Any]]:
    """What a file of columns holds of a table: its columns, or the numbers that they follow from."""
    if not isinstance(table.derivation, CollectiveTransfers):
        return table.columns()
    facts, arrivals = table.derivation.stored()
    return {"all_reduces": np.array(json.dumps(facts)), "arrivals": arrivals}


def _table(name: str, arrays: Mapping[str, NDArray[Any]]) -> Table:
    if name == "transfers" and DERIVED in arrays:
        facts = json.loads(str(arrays[DERIVED]))
        return Transfers.later(CollectiveTransfers.of_stored(facts, arrays["transfers.arrivals"]))
    return table_of(name, {key: arrays[f"{name}.{key}"] for key in TABLES[name].dtypes})


def _arrays(*, derived: bool) -> list[str]:
    """The names in a file of columns."""
    columns = {name: list(table.dtypes) for name, table in TABLES.items()}
    if derived:
        columns["transfers"] = ["arrivals"]
    return ["metadata", *(f"{name}.{key}" for name, keys in columns.items() for key in keys)]


def check_name(path: Path) -> None:
    """Raises InputError where `save` could not write a trace to `path`. Callers check this before a run."""
    _suffix(path)
    check_writable(path)


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise InputError.of("trace file", str(path), f"must end in {', '.join(SUFFIXES)}", "rename it, such as run.json.gz")
