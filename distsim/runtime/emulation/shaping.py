"""The numbers that impose a bandwidth: packet size, token buckets, window.

A bandwidth counts payload, as everywhere in distsim. So the shaper's rate is higher by the bytes that Ethernet, IP and
TCP add to each segment, and bare acknowledgements pass the shaper without waiting. A message of S bytes takes S /
bandwidth, whatever travels in the opposite direction.

Bytes leave a NIC through two token buckets (a class of `htb`): one fills at the link's rate, a small one at a higher
peak. Two effects falsify the rate, in opposite directions. A link that has rested has full buckets. At once, it sends
what the small bucket holds and one packet more. Then it sends at the peak until the other bucket is empty. So large
buckets make messages too fast. A timer that fires late loses the tokens that its buckets cannot hold; each packet needs
a timer, and timers cost CPU. So small packets and small buckets make everything too slow when the cores are busy; at
the peak, a link makes up for late timers. Packets and buckets are set as times at the link's own rate: a `Grain`.

Where each rank has a core of its own, timers are hardly late, and links are FINE: a message on an idle link is early by
0.25 ms at most. Where ranks share cores, links are COARSE: by 0.5 ms at most, which is 6 % of 1 MiB and 1.5 % of 4 MiB
at 1 Gbit/s. So keep messages large there. A packet has at least one frame, and a bucket at least another, so below 100
Mbit/s messages are earlier than that.

The down-link's bucket is larger than the up-link's, so a single stream, which arrives at the sender's rate or peak,
does not wait for a second timer. Two senders to one host that has rested are early by up to 0.7 ms.

Flows that share a link get equal shares of it, as in the simulator's network: each NIC has a queue for every other
host, and serves the queues in turn. No packet may be lost, since a loss costs a retransmission timeout. So queues are
larger than all bytes that can be in flight, and each flow keeps one fixed congestion window in flight from its first
byte. The window that the receiver offers stays large, for two reasons. Bytes that wait to be read fill that window, so
a rank that gets no core for a while would stop the flow. And TCP throws away data whose acknowledgement is older than
the largest window ever offered (RFC 5961), which would happen here because bare acknowledgements overtake data.

One case stays unfair: a flow whose up-link carries exactly its share of the down-link (100 Mbit/s up, two flows into
200 Mbit/s down) cannot make up for a turn that it missed, so the other flow takes that turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MTU_BYTES = 1500
SEGMENT_BYTES = MTU_BYTES - 52  # payload of a frame: less the headers of IP and TCP, and TCP's timestamps
FRAME_BYTES = MTU_BYTES + 14  # bytes that the shaper counts for a frame: with Ethernet's header
LARGEST_PACKET_BYTES = 65536  # the kernel's own limit for a burst of segments that travels as one
HEADROOM_BYTES = 400  # bytes that the kernel sets aside for headers in that limit

DOWN_LATE_SECONDS = 500e-6
WINDOW_SECONDS = 500e-6
SMALLEST_WINDOW_BYTES = 16 * 1024
SMALLEST_BUFFER_BYTES = 4 * 1024 * 1024
OWN_RATE = "8kbit"  # of a share: next to nothing, so that it borrows all it has from the link, turn by turn
QUEUE_BYTES, QUEUE_PACKETS = 256 * 1024 * 1024, 1_000_000  # never reached: flows stop at their windows


# A TCP segment with timestamps, no payload, and no flag but ACK: total length, protocol, flags.
BARE_ACKNOWLEDGEMENT = "match u16 52 0xffff at 2 match u8 6 0xff at 9 match u8 16 0xff at 33"


AddressField = Literal["src", "dst"]


@dataclass(frozen=True)
class Grain:
    """How finely up-links cut time. Seconds are times at the link's own rate.

    packet_seconds: a packet. late_seconds: a bucket, so how late a timer may be before the link loses bytes. peak: the
    peak rate over the rate. peak_late_seconds: the bucket at the peak rate.
    """

    packet_seconds: float
    late_seconds: float
    peak: float
    peak_late_seconds: float


COARSE = Grain(200e-6, 300e-6, 2.0, 60e-6)
FINE = Grain(100e-6, 150e-6, 1.3, 60e-6)


@dataclass(frozen=True)
class ShapedLink:
    """How one direction of a NIC is shaped. Rate and peak count bytes of frames, and so do packet and buckets."""

    wire_bytes_per_second: float
    packet_bytes: int
    bucket_bytes: int
    peak_bytes_per_second: float
    peak_bucket_bytes: int

    def commands(self, device: str, end: AddressField, others: Sequence[str], delay_seconds: float = 0.0) -> list[str]:
        """Commands for `tc` that shape the traffic from `device`, in equal shares for `others`, and delay it before.

        others: the addresses that the bytes come from (end "src") or go to (end "dst").
        """
        rate, bucket = f"{round(8 * self.wire_bytes_per_second)}bit", self.bucket_bytes
        peak, peak_bucket = f"{round(8 * self.peak_bytes_per_second)}bit", self.peak_bucket_bytes
        twice = f"{round(16 * self.wire_bytes_per_second)}bit"  # no less than any peak
        netem = f"netem delay {1e6 * delay_seconds:.3f}us limit {QUEUE_PACKETS}"
        queue = netem if delay_seconds else f"bfifo limit {QUEUE_BYTES}"
        commands = [
            f"qdisc add dev {device} root handle 1: htb default 2",
            f"class add dev {device} parent 1: classid 1:1 htb rate {rate} ceil {peak} burst {bucket}"
            f" cburst {peak_bucket}",
            f"filter add dev {device} parent 1: prio 1 protocol ip u32 {BARE_ACKNOWLEDGEMENT} flowid 1:0",
        ]
        for number, other in enumerate(others, 2):
            commands += [
                f"class add dev {device} parent 1:1 classid 1:{number:x} htb rate {OWN_RATE} ceil {twice}"
                f" cburst {bucket} quantum {self.packet_bytes}",
                f"qdisc add dev {device} parent 1:{number:x} {queue}",
                f"filter add dev {device} parent 1: prio 2 protocol ip u32 match ip {end} {other} flowid 1:{number:x}",
            ]
        return commands

    @property
    def largest_packet_bytes(self) -> int:
        """The value for `gso_max_size`."""
        return min(self.packet_bytes + HEADROOM_BYTES, LARGEST_PACKET_BYTES)


def up_link(bytes_per_second: float, grain: Grain) -> ShapedLink:
    """The link that sends `bytes_per_second` of payload.

    >>> up_link(125e6, COARSE).packet_bytes, up_link(125e6, FINE).packet_bytes
    (25738, 13626)
    """
    return _link(bytes_per_second, grain)


def down_link(bytes_per_second: float, grain: Grain) -> ShapedLink:
    """The link that receives `bytes_per_second` of payload."""
    return _link(bytes_per_second, Grain(grain.packet_seconds, DOWN_LATE_SECONDS, 1.0, DOWN_LATE_SECONDS))


def _link(bytes_per_second: float, grain: Grain) -> ShapedLink:
    wire = bytes_per_second * FRAME_BYTES / SEGMENT_BYTES
    most = (LARGEST_PACKET_BYTES - HEADROOM_BYTES) // FRAME_BYTES
    segments = min(max(round(bytes_per_second * grain.packet_seconds / SEGMENT_BYTES), 1), most)
    bucket, peak_bucket = (
        max(math.ceil(seconds * wire), FRAME_BYTES) for seconds in (grain.late_seconds, grain.peak_late_seconds)
    )
    return ShapedLink(wire, segments * FRAME_BYTES, bucket, grain.peak * wire, peak_bucket)


@dataclass(frozen=True)
class Window:
    """The bytes that every flow of a cluster keeps in flight, and the size of its sockets' buffers."""

    window_bytes: int
    buffer_bytes: int

    @property
    def route(self) -> str:
        """The option for `ip route`. Reno changes nothing where nothing is lost, so the window stays as it is."""
        segments = math.ceil(self.window_bytes / SEGMENT_BYTES)
        return f"congctl reno cwnd lock {segments} initcwnd {segments}"


def window(fastest_bytes_per_second: float, latency_seconds: float) -> Window:
    """The window that keeps the fastest link busy over a round trip. All flows have it, so that shares are equal."""
    needed = math.ceil(fastest_bytes_per_second * (WINDOW_SECONDS + 2 * latency_seconds))
    size = max(needed, SMALLEST_WINDOW_BYTES)
    return Window(size, max(4 * size, SMALLEST_BUFFER_BYTES))
