"""The record of one run: spans, updates, contributions, transfers, metadata; saved and loaded without loss."""

from distsim.trace.builder import TraceBuilder
from distsim.trace.invariants import violations
from distsim.trace.tables import (
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    FOR_ANOTHER,
    NO_COLLECTIVE,
    NO_SERVER,
    NO_VERSION,
    PAUSE_KINDS,
    Contributions,
    SpanKind,
    Spans,
    Transfers,
    Updates,
)
from distsim.trace.texts import Texts
from distsim.trace.trace import Trace

__all__ = [
    "COMMUNICATION_KINDS",
    "COMPUTE_KINDS",
    "FOR_ANOTHER",
    "NO_COLLECTIVE",
    "NO_SERVER",
    "NO_VERSION",
    "PAUSE_KINDS",
    "Contributions",
    "SpanKind",
    "Spans",
    "Texts",
    "Trace",
    "TraceBuilder",
    "Transfers",
    "Updates",
    "violations",
]
