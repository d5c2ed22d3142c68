"""What the animation of a schedule draws, read from its frames: squares, counts, arrows, marks, controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.collectives import (
    Schedule,
    ScheduleError,
    Transfer,
    all_to_all,
    broadcast,
    halving_doubling,
    parameter_server,
    ring,
    tree,
)
from distsim.collectives.schedule import START
from distsim.figures import collective
from distsim.figures.collective_rounds import play

STATES = ("nothing", "some workers' parts", "complete")


def of_name(drawn: go.Figure | go.Frame, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in drawn.data if trace.name == name]
    return found


def points(trace: Any) -> list[tuple[float, float]]:
    """The points that are drawn."""
    return [(x, y) for x, y in zip(trace.x, trace.y, strict=True) if x is not None]


def added_twice() -> Schedule:
    """A ring of four that sends chunk 0 from rank 0 once more."""
    rounds = [list(transfers) for transfers in ring(4).rounds]
    rounds[1].append(Transfer(0, 1, 0, reduce=True))
    return replace(ring(4), name="mine", rounds=tuple(map(tuple, rounds)))


@pytest.mark.parametrize("schedule", [ring(4), halving_doubling(8), parameter_server(8, 2), tree(5), broadcast(3)])
def test_every_round_is_a_frame_with_a_square_per_rank_and_chunk(schedule: Schedule) -> None:
    figure = collective(schedule).figure
    assert [frame.name for frame in figure.frames] == [
        "start",
        *(f"round {number}" for number in range(len(schedule.rounds))),
    ]
    for frame, transfers in zip(figure.frames, [(), *schedule.rounds], strict=True):
        squares = [point for state in STATES for point in points(of_name(frame, state))]
        assert len(set(squares)) == len(squares) == schedule.ranks * schedule.chunks
        assert len(points(of_name(frame, "chunk on its way"))) == len(transfers)
        assert len(points(of_name(frame, "transfer"))) == 2 * len(transfers)
        assert len(points(of_name(frame, "fault"))) == 0
    assert len(figure.layout.shapes) == schedule.ranks


def test_squares_tell_how_many_workers_they_sum() -> None:
    figure = collective(ring(4)).figure
    frames = {frame.name: frame for frame in figure.frames}
    assert list(of_name(frames["start"], "some workers' parts").text) == ["1"] * 16
    after_two = of_name(frames["round 1"], "some workers' parts").text
    assert sorted(after_two) == ["1"] * 8 + ["2"] * 4 + ["3"] * 4
    assert list(of_name(frames["round 2"], "complete").text) == ["4"] * 4
    assert list(of_name(frames["round 5"], "complete").text) == ["4"] * 16
    assert "rank 0, chunk 1: 4 of 4 workers' parts" in of_name(frames["round 2"], "complete").hovertext


def test_arrows_lead_from_source_to_target_and_carry_their_chunks() -> None:
    figure = collective(halving_doubling(8)).figure
    labels = {note.text: np.array([note.x, note.y]) for note in figure.layout.annotations}
    frame = figure.frames[1]
    arrows = of_name(frame, "transfer")
    assert list(arrows.x[2::3]) == [None] * 8
    for number, transfer in enumerate(halving_doubling(8).rounds[0]):
        begin, end = (np.array([arrows.x[3 * number + i], arrows.y[3 * number + i]]) for i in (0, 1))
        for point, rank in ((begin, transfer.source), (end, transfer.target)):
            nearest = min(labels, key=lambda name, at=point: float(np.hypot(*(labels[name] - [0, 40] - at))))
            assert nearest == f"rank {rank}"
    assert set(of_name(frame, "chunk on its way").text) == {"0–3", "4–7"}
    assert of_name(frame, "chunk on its way").hovertext[0].startswith("chunk 4–7 of rank 0, added to rank")


def test_what_arrived_in_the_round_is_marked() -> None:
    for frame, transfers in zip(collective(ring(4)).figure.frames[1:], ring(4).rounds, strict=True):
        marks = of_name(frame, "new in this round")
        assert sorted(map(tuple, marks.customdata)) == sorted((t.target, t.chunk) for t in transfers)
        squares = {point for state in STATES for point in points(of_name(frame, state))}
        assert set(points(marks)) <= squares


def test_it_plays_pauses_and_slides() -> None:
    figure = collective(ring(4)).figure
    play_button, pause = figure.layout.updatemenus[0].buttons
    assert (play_button.label, play_button.method, play_button.args[0]) == ("Play", "animate", None)
    assert (pause.label, pause.args[0]) == ("Pause", (None,))
    steps = figure.layout.sliders[0].steps
    assert [step.args[0] for step in steps] == [(frame.name,) for frame in figure.frames]
    assert [step.label for step in steps] == ["start", "0", "1", "2", "3", "4", "5"]
    assert figure.layout.sliders[0].active == 0


def test_a_wrong_schedule_is_drawn_up_to_its_fault_which_is_marked_and_told() -> None:
    schedule = added_twice()
    with pytest.raises(ScheduleError) as told:
        schedule.check()
    shown = collective(schedule)
    assert [frame.name for frame in shown.figure.frames] == ["start", "round 0", "round 1"]
    assert shown.figure.layout.sliders[0].active == 2
    last = shown.figure.frames[-1]
    assert list(map(tuple, of_name(last, "fault").customdata)) == [(1, 0)]
    assert points(of_name(shown.figure, "fault")) == points(of_name(last, "fault"))
    squares = {point for state in STATES for point in points(of_name(last, state))}
    assert points(of_name(last, "fault"))[0] in squares
    assert not points(of_name(shown.figure.frames[1], "fault"))
    assert "mine, 4 ranks, is wrong in round 1, at rank 1 in chunk 0" in shown.summary
    assert str(told.value) in shown.summary


def test_a_schedule_without_rounds_is_wrong_at_the_start() -> None:
    shown = collective(Schedule("mine", workers=2, chunks=1, rounds=()))
    assert [frame.name for frame in shown.figure.frames] == ["start"]
    assert "mine, 2 ranks, is wrong at the start, at rank 0 in chunk 0" in shown.summary


@pytest.mark.parametrize("pair", ["start", "end"])
def test_a_start_or_end_that_cannot_be_drawn_is_refused(pair: str) -> None:
    wrong = frozenset({(4, 0)})
    schedule = replace(ring(4), start=wrong) if pair == "start" else replace(ring(4), end=wrong)
    with pytest.raises(ScheduleError, match=f"at the {pair}: rank = 4"):
        collective(schedule)


def test_what_is_missing_at_the_end_is_marked_after_the_last_round() -> None:
    schedule = replace(ring(4), name="short", rounds=ring(4).rounds[:-1])
    shown = collective(schedule)
    assert len(shown.figure.frames) == 6
    assert list(map(tuple, of_name(shown.figure, "fault").customdata)) == [(0, 2)]
    assert "lacks the part of worker" in shown.summary


def test_a_rank_that_there_is_not_is_told_and_marks_nothing() -> None:
    rounds = ((Transfer(0, 9, 0, reduce=True), Transfer(0, 1, 0, reduce=True)),)
    shown = collective(Schedule("wild", 2, 1, rounds))
    assert not points(of_name(shown.figure, "fault"))
    assert "must be 0 to 1" in shown.summary
    assert len(points(of_name(shown.figure, "chunk on its way"))) == 1


@pytest.mark.parametrize("algorithm", [ring, tree, halving_doubling, all_to_all])
def test_one_rank_alone_sends_nothing(algorithm: Callable[[int], Schedule]) -> None:
    shown = collective(algorithm(1))
    assert len(shown.figure.frames) == 1
    assert "nothing is sent" in shown.summary


def test_many_ranks_are_a_matrix_with_a_number_in_each_cell() -> None:
    figure = collective(ring(16)).figure
    drawn = figure.frames[16].data[0]  # the start, and rounds 0 to 15
    assert drawn.type == "heatmap"
    assert drawn.z.shape == (16, 16)
    counts = play(ring(16), most=99).rounds[16].counts
    assert (drawn.text == counts).all()
    assert (drawn.z == 100).sum() == (counts == 16).sum() == 32
    assert figure.layout.xaxis.title.text == "chunk"
    assert figure.layout.yaxis.title.text == "rank"
    assert len(points(of_name(figure.frames[16], "new in this round"))) == 16


def test_256_ranks_make_a_page_of_a_few_megabytes() -> None:
    shown = collective(halving_doubling(256))
    assert len(shown.figure.frames) == 1 + 16
    assert shown.figure.frames[-1].data[0].z.min() == 100
    assert shown.figure.frames[8].data[0].z.max() == 100
    assert 1 <= shown.figure.frames[8].data[0].z.min() < 5
    assert len(shown.figure.to_json()) < 4e6


def test_too_many_rounds_are_shown_in_part_with_the_first_and_the_last() -> None:
    found = play(ring(20), most=10)
    assert [one.number for one in found.rounds][::9] == [START, 37]
    assert len(found.rounds) == 10
    assert found.complete(found.rounds[-1]) == 400


def test_the_table_counts_what_is_sent_and_complete() -> None:
    shown = collective(parameter_server(3, servers=2))
    assert [row["transfers"] for row in shown.table] == [0, 6, 6]
    assert [row["complete, of those wanted"] for row in shown.table] == [0, 0, 6]
    assert "No rank sends more than 3 chunks; the whole data are 2 chunks" in shown.summary
