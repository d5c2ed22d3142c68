"""Published scaling: the tables recomputed by other means, and what is claimed about them."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.accuracy.megatron import megatron
from distsim.accuracy.published import (
    MISSING_IN_ARTICLE_002,
    MISSING_IN_ARTICLE_003,
    cifar_with_ddp,
    ddp_benchmark,
    ddp_buckets,
    deeplab_on_v100,
    percent,
    reports,
)

TABLES = {
    "ddp_benchmark": ddp_benchmark,
    "ddp_buckets": ddp_buckets,
    "deeplab_on_v100": deeplab_on_v100,
    "cifar_with_ddp": cifar_with_ddp,
    "megatron": megatron,
    "reports": reports,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_the_same_keys_and_a_source(name: str) -> None:
    rows = TABLES[name]()
    assert rows
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert all(isinstance(row["source"], str) and row["source"] for row in rows)
    for row in rows:
        for value in row.values():
            assert value is None or type(value) in (str, float, int, bool)
            assert not isinstance(value, float) or np.isfinite(value)


def test_the_ring_fitted_on_four_gpus_beats_the_constant_on_every_row() -> None:
    rows = ddp_benchmark()
    predicted = [row for row in rows if not row["fitted"]]
    assert [row["gpus"] for row in predicted] == [8, 16] * 4
    for row in predicted:
        assert abs(row["model_error_pct"]) < abs(row["constant_error_pct"])
        assert row["better_than_constant"] is True
    assert max(abs(row["constant_error_pct"]) for row in predicted) == pytest.approx(2.55, abs=0.005)
    assert max(abs(row["model_error_pct"]) for row in predicted) == pytest.approx(1.32, abs=0.005)


@pytest.mark.parametrize("model", ["ResNet-50", "ResNet-101", "ResNeXt-50", "ResNeXt-101"])
def test_the_fit_uses_one_two_and_four_gpus_alone(model: str) -> None:
    """Least squares by the normal equations of a line through x = 0, 1, 3/2, and its values at 7/4 and 15/8."""
    rows = {row["gpus"]: row for row in ddp_benchmark() if row["model"] == model}
    assert [rows[gpus]["fitted"] for gpus in (1, 2, 4, 8, 16)] == [True, True, True, False, False]
    x = np.array([0.0, 1.0, 1.5])
    y = np.array([rows[gpus]["measured_seconds"] for gpus in (1, 2, 4)])
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    for gpus, at in ((1, 0.0), (2, 1.0), (4, 1.5), (8, 1.75), (16, 1.875)):
        expected = y.mean() + slope * (at - x.mean())
        assert rows[gpus]["model_seconds"] == pytest.approx(expected, rel=1e-9)
        error = 100 * (expected - rows[gpus]["measured_seconds"]) / rows[gpus]["measured_seconds"]
        assert rows[gpus]["model_error_pct"] == pytest.approx(error, abs=1e-9)
    assert rows[16]["constant_seconds"] == rows[4]["measured_seconds"]
    assert slope > 0


def test_ddp_costs_something_on_one_gpu_already() -> None:
    for row in ddp_benchmark():
        assert row["without_ddp_seconds"] < row["measured_seconds"] < 1.12 * row["without_ddp_seconds"]


def test_smaller_buckets_are_slower_everywhere_and_hiding_alone_says_the_contrary() -> None:
    rows = ddp_buckets()
    assert len(rows) == 4 * 5 * 2
    for row in rows:
        assert row["measured_sign"] == row["paid_sign"] == 1
        assert row["hidden_sign"] == (-1 if row["gpus"] > 1 else 0)
        assert row["one_mb_seconds"] == pytest.approx(row["default_seconds"] * (1 + row["change_pct"] / 100))
        assert row["microseconds_per_bucket"] > 0


def test_the_two_published_tables_are_of_the_same_runs() -> None:
    """At the 75th percentile the default buckets' times, got back from the changes, are near the medians; except
    ResNet-101 on 16 GPUs, where the baseline of the comparison was slower than the benchmark's own run."""
    medians = {(row["model"], row["gpus"]): row["measured_seconds"] for row in ddp_benchmark()}
    for row in ddp_buckets():
        if row["percentile"] == 75:
            tolerance = 0.05 if (row["model"], row["gpus"]) == ("ResNet-101", 16) else 0.01
            assert row["default_seconds"] == pytest.approx(medians[row["model"], row["gpus"]], rel=tolerance)
    worst = next(r for r in ddp_buckets() if (r["model"], r["gpus"], r["percentile"]) == ("ResNet-50", 16, 95))
    assert worst["one_mb_seconds"] == 0.122
    assert worst["default_seconds"] == pytest.approx(0.1048, abs=5e-5)


def test_no_model_fitted_at_four_gpus_expects_so_little_of_eight() -> None:
    rows = {row["model"]: row for row in deeplab_on_v100()}
    # By hand: step(4) = 4/3 x, so ring r = 2/9, server 2 p r = p / 12, serial s = 1/9.
    expected = {"ring": 8 / (1 + 2 / 9 * 7 / 4), "server": 8 / (1 + 8 / 12), "serial": 1 / (1 / 9 + 8 / 9 / 8)}
    for model, row in rows.items():
        assert row["speed_up_4"] == 3.0
        assert row["speed_up_8"] == pytest.approx(expected[model], rel=1e-9)
        assert row["error_pct"] == pytest.approx(100 * (expected[model] / 3.9 - 1), rel=1e-9)
        assert row["error_pct"] > 10
        assert all(cause in row["missing"] for cause in MISSING_IN_ARTICLE_002)
    assert [round(rows[model]["gain_pct"]) for model in ("ring", "server", "serial")] == [92, 60, 50]


def test_the_all_reduce_does_not_explain_443_seconds() -> None:
    one, four = cifar_with_ddp()
    assert (one["seconds"], four["seconds"]) == (73.0, 443.0)
    assert one["processes"] * one["batch"] == four["processes"] * four["batch"] == 32
    assert four["steps"] * 32 == 10 * 0.8 * 50_000
    assert four["step_seconds"] - one["step_seconds"] == pytest.approx(four["excess_seconds"], rel=1e-12)
    assert four["excess_seconds"] == pytest.approx(0.0296, rel=1e-3)
    assert four["times_slower"] == pytest.approx(6.07, abs=0.005)
    # 6 rounds of 62,006 bytes (a quarter of the gradient).
    assert four["all_reduce_seconds"] == pytest.approx(6 * (20e-6 + 62_006 / 1e10), rel=1e-9)
    assert four["all_reduce_seconds"] < 0.01 * four["excess_seconds"]
    # f + g b with f = 64 g: eight times the whole time at batch 8 than at 512, the batch-32 step as published.
    share = one["own_step_seconds"] / (64 + 32)
    by_batch = {batch: (64 + batch) / batch for batch in (8, 512)}
    assert by_batch[8] == pytest.approx(8 * by_batch[512])
    assert four["own_step_seconds"] == pytest.approx(share * (64 + 8), rel=1e-9)
    assert one["own_step_seconds"] == pytest.approx(one["step_seconds"], rel=1e-9)
    assert all(cause in four["missing"] for cause in MISSING_IN_ARTICLE_003)


def test_other_reports_are_data() -> None:
    rows = {(row["model"], row["quantity"], row["gpus"]): row["value"] for row in reports()}
    assert rows["ResNet-101", "scaling efficiency", 512] == 0.90
    assert rows["VGG-16", "scaling efficiency", 128] == 0.79
    assert rows["VGG-16", "scaling efficiency", 512] == 0.68
    # Goyal et al.: 29 hours on 8 GPUs and 1 hour on 256 are the 90 % that they give.
    hours = (rows["ResNet-50", "hours of training", 8], rows["ResNet-50", "hours of training, batch 8192", 256])
    efficiency = rows["ResNet-50", "scaling efficiency from 8 GPUs on", 256]
    assert hours[0] / hours[1] / (256 / 8) == pytest.approx(efficiency, abs=0.01)


def test_percent_is_of_the_measurement() -> None:
    assert percent(0.9, measured=1.0) == pytest.approx(-10)
    assert percent(1.0, measured=0.8) == pytest.approx(25)


def test_megatron_s_largest_model_by_hand() -> None:
    """8 operations for each parameter and token, 6 sums of 50 MB a block on 8 GPUs, and all gradients over a node."""
    row = next(row for row in megatron() if row["gpus"] == 512)
    tokens, width, blocks = 8 * 1024, 3072, 72
    parameters = 12 * blocks * width**2 + (51_200 + 1024) * width
    assert row["parameters"] == pytest.approx(parameters, rel=0.001)
    computed = 8 * parameters * tokens / 39e12 / 8
    attention = 4 * 4 * tokens * 1024 * width * blocks / 39e12 / 8
    assert row["compute_seconds"] == pytest.approx(computed + attention, rel=0.02)
    assert row["activation_seconds"] == pytest.approx(6 * blocks * 2 * 7 / 8 * 2 * tokens * width / 150e9)
    assert row["gradient_seconds"] == pytest.approx(2 * 63 / 64 * 2 * parameters / 100e9, rel=0.001)


def test_the_formulas_say_more_than_megatron_reached() -> None:
    rows = [row for row in megatron() if row["gpus"] > 1]
    assert all(row["model_pct"] > row["published_pct"] for row in rows)
    assert max(row["error_pct"] for row in rows) < 15
