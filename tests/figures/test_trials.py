"""The figure of trials shows what the jobs say."""

from __future__ import annotations

import pytest

from distsim import InputError
from distsim.figures import trials
from distsim.figures.captioned import Captioned
from distsim.search.clock import simulated_search
from distsim.search.job import Job, Placed
from distsim.search.sources import Halving, Queue

BATCHES = (8, 32, 128, 512)
SETTINGS = [{"batch": batch} for batch in BATCHES]


def placed(workers: int, source: Queue | Halving | None = None) -> list[Placed]:
    return simulated_search(
        source or Queue(SETTINGS, epochs=2), workers, lambda job: (job.epochs * 80.0 / job.settings["batch"], job.trial)
    )


def bars(shown: Captioned) -> list[tuple[str, int, float, float]]:
    """Of each bar its name, worker, start and end, in the unit of the axis."""
    return [
        (bar.name, worker, base, base + length)
        for bar in shown.figure.data
        for worker, base, length in zip(bar.y, bar.base, bar.x, strict=True)
    ]


def test_each_job_is_a_bar_of_its_worker_and_a_row() -> None:
    found = placed(2)
    shown = trials({"in turn": found}, by="batch")
    assert sorted(bars(shown)) == sorted(
        (one.job.label, one.worker, one.start_seconds, pytest.approx(one.end_seconds)) for one in found
    )
    assert [(row["trial"], row["worker"], row["from"]) for row in shown.table] == [
        (0, 0, "0 s"), (1, 1, "0 s"), (2, 1, "5 s"), (3, 1, "6.25 s")
    ]  # fmt: skip
    busy = 100 * sum(one.seconds for one in found) / 40
    assert shown.summary == f"in turn: 4 jobs end after 20 s, and workers train for {busy:.0f} % of the time."
    axis = shown.figure.layout.xaxis
    assert axis.title.text == "time (s)"
    assert axis.range[1] > 20


def test_searches_share_an_axis_of_time_a_legend_and_looks() -> None:
    shown = trials({"all": placed(3), "halving": placed(2, Halving(SETTINGS, 1, 2, factor=2))}, by="batch")
    assert "; halving: 6 jobs end after 20 s (0 % off “all”), and" in shown.summary
    assert "(33 % above “two”)" in trials({"two": placed(2), "one": placed(1)}, by="batch").summary
    assert [note.text for note in shown.figure.layout.annotations] == ["all", "halving"]
    looks = {(bar.name, bar.marker.color, bar.marker.pattern.shape) for bar in shown.figure.data}
    assert len(looks) == len({name for name, *_ in looks}) == 4
    assert sorted(bar.name for bar in shown.figure.data if bar.showlegend) == sorted(f"batch {b}" for b in BATCHES)
    assert shown.figure.layout.yaxis.ticktext == ("worker 0", "worker 1", "worker 2")
    assert shown.figure.layout.yaxis2.ticktext == ("worker 0", "worker 1")
    assert {row["epochs"] for row in shown.table if row["search"] == "halving"} == {"0 to 1", "1 to 2"}


@pytest.mark.parametrize("values", [1, 5, 12, 64])
@pytest.mark.parametrize("workers", [1, 4, 64])
def test_any_number_of_values_and_workers_is_drawn_and_narrow_bars_have_no_number(values: int, workers: int) -> None:
    settings = [{"rate": 0.01 * 2**value} for value in range(values)]
    found = simulated_search(Queue(settings * 2, 1), workers, lambda job: (1e-3 * 2.0 ** (job.trial % 7), 0.0))
    shown = trials({"one": found}, by="rate")
    assert len(bars(shown)) == 2 * values
    assert len({bar.marker.color for bar in shown.figure.data}) == values
    assert shown.figure.layout.xaxis.title.text == "time (ms)"
    longest = max(one.end_seconds for one in found) * 1e3
    for bar in shown.figure.data:
        for length, text in zip(bar.x, bar.text, strict=True):
            assert bool(text) == (length >= 0.035 * longest)


@pytest.mark.parametrize(
    ("searches", "by", "said"),
    [
        ({}, "batch", "must hold a search"),
        ({"none": []}, "batch", "must hold a job"),
        ({"one": placed(1)}, "rate", "rate': is no setting of a trial of one, which has batch"),
        ({"one": [Placed(Job(0, {}, 1), 0, 0.0, 1.0, 0.0)]}, "rate", "which has no setting"),
    ],
)
def test_bad_arguments_are_refused(searches: dict[str, list[Placed]], by: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        trials(searches, by)
