"""The engines against each other: one scenario, one meaning, whoever works it out."""

from __future__ import annotations

from distsim.trace import NO_SERVER, SpanKind, TraceBuilder


def test_columns_and_single_rows_keep_their_order() -> None:
    """What the engines write at once and what the story writes row by row are one table."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 1.0)
    builder.extend(
        "spans", worker=[1, 2], kind=[SpanKind.SEND] * 2, step=[3, 4], start_seconds=[1.0, 2.0],
        end_seconds=[1.5, 2.5], bytes=[10.0, 20.0], label=["to worker 0", ""],
    )  # fmt: skip
    builder.span(3, SpanKind.WAIT, 5, 3.0, 4.0, label="cancelled")
    builder.extend("updates", version=[1], server=[NO_SERVER], time_seconds=[9.0])
    trace = builder.build(workers=4, servers=0, producer="simulated")
    assert trace.spans.worker.tolist() == [0, 1, 2, 3]
    assert trace.spans.step.tolist() == [0, 3, 4, 5]
    assert trace.spans.bytes.tolist() == [0.0, 10.0, 20.0, 0.0]
    assert trace.spans.label.tolist() == ["", "to worker 0", "", "cancelled"]
    assert trace.total_seconds == 9.0
    assert builder.build(workers=4, servers=0, producer="simulated") == trace
