"""The numbers that the kernel's shapers are given: 1 Gbit/s of payload are 125e6 x 1514 / 1448 bytes of frames."""

from __future__ import annotations

import re

import pytest

from distsim.runtime.emulation.shaping import COARSE, FINE, ShapedLink, down_link, up_link

WIRE = 125e6 * 1514 / 1448


def options(link: ShapedLink, number: str) -> dict[str, str]:
    """The options of a link's class with this number."""
    (command,) = [one for one in link.commands("eth0", "dst", ["10.0.0.1"]) if f"classid 1:{number} htb" in one]
    return dict(re.findall(r"(rate|ceil|burst|cburst|quantum) (\S+)", command))


@pytest.mark.parametrize(
    ("link", "peak", "packet", "seconds", "peak_seconds"),
    [
        (up_link(125e6, COARSE), 2.0, 17, 300e-6, 60e-6),
        (up_link(125e6, FINE), 1.3, 9, 150e-6, 60e-6),
        (down_link(125e6, COARSE), 1.0, 17, 500e-6, 500e-6),
        (down_link(125e6, FINE), 1.0, 9, 500e-6, 500e-6),
    ],
)
def test_a_link_has_its_rate_and_a_peak(
    link: ShapedLink, peak: float, packet: int, seconds: float, peak_seconds: float
) -> None:
    whole, share = options(link, "1"), options(link, "2")
    assert whole["rate"] == f"{round(8 * WIRE)}bit"
    assert whole["ceil"] == f"{round(8 * peak * WIRE)}bit"
    assert int(whole["burst"]) == pytest.approx(WIRE * seconds, abs=1.0)
    assert int(whole["cburst"]) == pytest.approx(WIRE * peak_seconds, abs=1.0)
    assert int(share["quantum"]) == packet * 1514
    # A flow alone gets all that its link gives, also at the peak.
    assert float(share["ceil"].removesuffix("bit")) == pytest.approx(2 * 8 * WIRE)
    assert peak <= 2.0
    assert int(share["cburst"]) >= int(whole["cburst"])


@pytest.mark.parametrize("link", [up_link(1e4, FINE), down_link(1e4, COARSE), up_link(1e12, COARSE)])
def test_a_packet_and_a_bucket_hold_a_frame_and_no_more_than_the_kernel_takes(link: ShapedLink) -> None:
    assert link.packet_bytes >= 1514
    assert link.bucket_bytes >= 1514
    assert link.peak_bucket_bytes >= 1514
    assert link.packet_bytes + 400 <= link.largest_packet_bytes <= 65536
