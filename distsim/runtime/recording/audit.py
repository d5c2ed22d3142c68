"""Checks the trace against the counts that each rank kept while it ran.

The source and the target counted every message that carried numbers. Every server counted the gradients that it applied
and dropped, and their staleness. Every rank counted its calls of the back end's all-reduce, whose messages nobody sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from distsim.errors import RunError
from distsim.runtime.recording.recorder import Record
from distsim.trace import SpanKind, Trace

Pair = tuple[int, int]  # source, target
Counts = Counter[tuple[Pair, str]]  # of "messages" and "bytes" between two ranks


def check_messages(trace: Trace, records: Sequence[Record], left_out: Mapping[Pair, int]) -> None:
    """Raises RunError where the trace and the ranks' counts of messages and bytes differ.

    left_out: by (source, target), messages that the ranks counted but that are not in the trace.
    """
    sent, received = _counted(records, "sent"), _counted(records, "received")
    _compare(trace, sent, "its source sent", received, "its target received")
    _compare(trace, _traced(trace, records, left_out), "the trace says", sent, "its ranks counted")


def check_gradients(trace: Trace, records: Sequence[Record]) -> None:
    """Raises RunError where the trace and the servers' counts of gradients differ."""
    for server in range(trace.workers, trace.workers + trace.servers):
        _check_gradients(trace, server, records[server].facts["counts"])


def check_all_reduces(trace: Trace, records: Sequence[Record]) -> None:
    """Raises RunError where the trace and the ranks' counts of the back end's all-reduces differ."""
    spans = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    for rank, record in enumerate(records):
        own = spans.where(spans.worker == rank)
        shown = {"calls": len(own), "bytes": own.bytes.sum()}
        for unit, count in record.facts.get("reduced", {}).items():
            if count != shown[unit]:
                raise RunError(
                    f"the counts of the run disagree: {trace.lane(rank)} counted {count:.0f} {unit} of all-reduces, "
                    f"but the trace shows {shown[unit]:.0f}"
                )


def _counted(records: Sequence[Record], direction: str) -> Counts:
    counts: Counts = Counter()
    for rank, record in enumerate(records):
        for other, (messages, num_bytes) in record.facts["tally"][direction].items():
            pair = (rank, int(other)) if direction == "sent" else (int(other), rank)
            counts[pair, "messages"], counts[pair, "bytes"] = messages, num_bytes
    return counts


def _traced(trace: Trace, records: Sequence[Record], left_out: Mapping[Pair, int]) -> Counts:
    counts: Counts = Counter()
    transfers = trace.transfers
    rows = zip(transfers.source.tolist(), transfers.target.tolist(), transfers.bytes.tolist(), strict=True)
    for source, target, num_bytes in rows:
        counts[(source, target), "messages"] += 1
        counts[(source, target), "bytes"] += int(num_bytes)
    for (source, target), messages in left_out.items():
        counts[(source, target), "messages"] += messages
        counts[(source, target), "bytes"] += messages * int(records[source].facts["num_bytes"])
    return counts


def _compare(trace: Trace, ours: Counts, we: str, theirs: Counts, they: str) -> None:
    for (source, target), unit in sorted(ours.keys() | theirs.keys()):
        one, other = ours[(source, target), unit], theirs[(source, target), unit]
        if one != other:
            route = f"{trace.lane(source)} to {trace.lane(target)}"
            raise RunError(f"the counts of the run disagree: from {route}, {we} {one} {unit}, but {they} {other}")


def _check_gradients(trace: Trace, server: int, counted: Mapping[str, int]) -> None:
    rows = trace.contributions.where(trace.contributions.server == server)
    told = {
        "applied": int(rows.applied.sum()),
        "dropped": int((~rows.applied & ~rows.cancelled).sum()),
        "staleness": int(rows.staleness.sum()),
    }
    for what, number in told.items():
        if number != counted[what]:
            name = "versions of staleness" if what == "staleness" else f"gradients {what}"
            raise RunError(
                f"the counts of the run disagree: at {trace.lane(server)}, the trace says {number} {name}, "
                f"but the server counted {counted[what]}"
            )
