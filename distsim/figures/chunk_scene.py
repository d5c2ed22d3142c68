"""The picture of one call of a collective at one moment, as SVG: ranks with their chunks, and the bytes of each NIC.

Workers stand clockwise around an ellipse, servers in the middle. The page's script moves the elements that change; it
reads their places from `content`, so that all of the layout is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import ceil, floor, hypot, isqrt, log10
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.chunk_movements import ChunkMovements
from distsim.figures.wording import counted
from distsim.units import show

WIDTH, HEIGHT = 460, 546
CENTRE, RADII, SERVER_RADII = np.array([230.0, 222.0]), np.array([190.0, 136.0]), np.array([72.0, 50.0])
SQUARENESS = 0.8  # of the curve on which workers stand: 1 is an ellipse, 0 a rectangle
LARGEST_GRID, LEAST_GRID, GAP = 60.0, 6.0, 0.28  # of a rank's chunks; between neighbours, a share of their distance
HEAD, EDGE = 15.0, 3.0  # of a rank's card: the strip with its name, and the paper around its chunks
LETTER = 7.2  # the width of a letter or digit
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_FLOOR = 58.0, 450.0, 430.0, 524.0
MOST_BETWEEN = (CHART_LEFT + 28.0, WIDTH - 30.0)  # the middle of the number above the highest bar
ABOUT = 1 - 1e-6  # of several highest bars, which rounding makes unequal, the first one has the number
CHART_HEAD, TICKS = 14.0, 3  # room above the bars for a number; lines across the chart
WIDEST_FLOW, THINNEST_FLOW, ASIDE, ARROW = 5.0, 0.8, 5.0, 8.0
PACKET, MANY, SMALLER = np.array([28.0, 13.0, 22.0]), 20, 0.6  # of several chunks, and of one; of many at once
LARGEST_OF_SERVERS = 46.0  # in place of LARGEST_GRID, where there are several servers
STEPS_OF_ARC = 3600


@dataclass(frozen=True, eq=False)
class Scene:
    """The layout of a call. most_bytes: at the top of the chart. most_rate: bytes/s of the widest flow."""

    calls: ChunkMovements
    most_bytes: float
    most_rate: float

    @cached_property
    def centres(self) -> Floats:
        """The middle of each rank's chunks, shape (ranks, 2)."""
        workers, servers = self.calls.workers, self.calls.ranks - self.calls.workers
        inner = _around(servers, SERVER_RADII) if servers > 1 else np.tile(CENTRE, (servers, 1))
        found = np.concatenate([_around(workers, RADII), inner])
        return np.asarray(found + np.array([0.0, HEAD / 2]))

    @cached_property
    def columns(self) -> int:
        """Chunks side by side on a rank's card; the others stand below. Where it suits, all rows are full."""
        square = isqrt(max(self.calls.chunks - 1, 0)) + 1
        full = [width for width in range(square, int(1.9 * square)) if self.calls.chunks % width == 0]
        return full[0] if full else square

    @cached_property
    def cells(self) -> list[float]:
        """For each rank, the width and height of a chunk on its card. Cards do not overlap."""
        found = []
        for own in (range(self.calls.workers), range(self.calls.workers, self.calls.ranks)):
            far = [np.abs(self.centres[one] - self.centres[two]) for one in own for two in range(own.start, one)]
            apart = min((max(x, y - HEAD) for x, y in far), default=2 * LARGEST_GRID)
            largest = LARGEST_OF_SERVERS if own.start and len(own) > 1 else LARGEST_GRID
            found += [float(np.clip(apart * (1 - GAP), LEAST_GRID, largest) / self.columns)] * len(own)
        return found

    @cached_property
    def packet(self) -> list[float]:
        """The length and height of a packet of several chunks, and the width and height of a packet of one."""
        most = max((len(self.calls.under_way(moment)) for moment in self.calls.moments_seconds), default=0)
        length, height, single = PACKET * (SMALLER if most > MANY else 1.0)
        return [round(float(value), 1) for value in (length, height, min(self.cells[0], single))]

    def half(self, rank: int) -> Floats:
        """Half the width and height of a rank's chunks."""
        return self.cells[rank] / 2 * np.array([self.columns, ceil(self.calls.chunks / self.columns)])

    def corner(self, rank: int, chunk: int) -> Floats:
        """The upper left corner of a chunk."""
        down, right = divmod(chunk, self.columns)
        return np.asarray(self.centres[rank] - self.half(rank) + self.cells[rank] * np.array([right, down]))

    def middle(self, rank: int, chunk: int, chunks: int) -> Floats:
        """The middle of neighbouring chunks, at which their packet leaves or arrives."""
        corners = [self.corner(rank, chunk), self.corner(rank, chunk + chunks - 1)]
        return np.asarray(np.mean(corners, axis=0) + self.cells[rank] / 2)

    def track(self, source: int, target: int) -> list[float]:
        """The line between two ranks' cards, a little to the left of the straight way: x, y, x, y."""
        way = self.centres[target] - self.centres[source]
        aside = ASIDE * np.array([way[1], -way[0]]) / hypot(*way)
        ends = []
        for rank, towards in ((source, way), (target, -way)):
            above = HEAD if towards[1] < 0 else 0.0
            room = self.half(rank) + EDGE + np.array([0.0, above])
            out = float(np.min(room / np.maximum(np.abs(towards), 1e-9)))
            ends.append(self.centres[rank] + min(out, 0.45) * towards + aside)
        ends[1] = ends[1] - min(ARROW / hypot(*(ends[1] - ends[0])), 0.4) * (ends[1] - ends[0])
        return [round(float(value), 1) for value in np.concatenate(ends)]

    def bar(self, rank: int, direction: int) -> tuple[float, float]:
        """The left edge and the width of a bar of the chart. direction: 0 is up, 1 is down."""
        each = (CHART_RIGHT - CHART_LEFT) / self.calls.ranks
        width = min(each * 0.36, 20.0)
        return CHART_LEFT + each * (rank + 0.5) + (direction - 1) * width, width

    def height(self, num_bytes: float) -> float:
        """The height of a bar."""
        return (CHART_FLOOR - CHART_TOP - CHART_HEAD) * num_bytes / self.most_bytes

    def flow(self, bytes_per_second: float) -> float:
        """The width of the line of a transfer."""
        return max(WIDEST_FLOW * bytes_per_second / self.most_rate, THINNEST_FLOW)

    def way(self, source: int, target: int, chunk: int, chunks: int) -> Floats:
        """The corners of a packet's way: from its place at the source over the track to its place at the target."""
        track = np.array(self.track(source, target)).reshape(2, 2)
        return np.vstack([self.middle(source, chunk, chunks), track, self.middle(target, chunk, chunks)])

    def content(self) -> dict[str, Any]:
        """The places that the script needs, and the call, as JSON."""
        pairs = {(one.source, one.target) for one in self.calls.movements}
        return self.calls.content() | {
            "cells": [round(cell, 3) for cell in self.cells],
            "columns": self.columns,
            "corners": [[round(float(x), 2) for x in self.corner(rank, 0)] for rank in range(self.calls.ranks)],
            "tracks": {f"{source} {target}": self.track(source, target) for source, target in sorted(pairs)},
            "floor": CHART_FLOOR,
            "about": ABOUT,
            "mostBetween": MOST_BETWEEN,
            "pixelsPerByte": self.height(1.0),
            "flowPerByteRate": WIDEST_FLOW / self.most_rate,
            "thinnest": THINNEST_FLOW,
            "packet": self.packet,
        }

    def svg(self, seconds: float, place: str = "") -> str:
        """The picture at this moment; its style is not in it. place: attributes that place it in another picture."""
        name = escape(self.calls.name.replace("_", " "))
        workers, servers = self.calls.workers, self.calls.ranks - self.calls.workers
        ranks = counted(workers, "worker") + (f" and {counted(servers, 'server')}" if servers else "")
        tracks = "".join(
            f'<line class="track" {_line(self.track(source, target))}/>'
            for source, target in sorted({(one.source, one.target) for one in self.calls.movements})
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {place} class="distsim-scene" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}, {ranks}">'
            f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>'
            f'<defs><marker id="distsim-head" viewBox="0 0 8 8" refX="3.5" refY="4" markerWidth="14" markerHeight="14" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0,0.5L8,4L0,7.5z"/></marker></defs>'
            f'<text class="name" x="8" y="19">{name}</text><text class="ranks" x="{WIDTH - 8}" y="19">{ranks}</text>'
            f'<text class="told{self._kind(seconds)}" x="8" y="37">{escape(self.told(seconds))}</text>'
            f"{tracks}{self._flows(seconds)}{self._cards(seconds)}{self._packets(seconds)}{self._chart(seconds)}</svg>"
        )

    def told(self, seconds: float) -> str:
        """One line about this moment."""
        calls = self.calls
        ended = sum(one.end_seconds <= seconds for one in calls.movements)
        if ended == len(calls.movements):
            if calls.fault:
                return "wrong: not every rank ends with every sum"
            return f"done after {show(calls.end_seconds, 'second')}: every rank has what it wants"
        sums = f"{calls.complete_at(seconds)} of {int(calls.wanted.sum())} sums complete"
        return f"{ended} of {len(calls.movements)} transfers ended, {sums}"

    def _kind(self, seconds: float) -> str:
        """What `told` tells of, as a class of the element."""
        if seconds < self.calls.end_seconds:
            return ""
        return " wrong" if self.calls.fault else " done"

    def _cards(self, seconds: float) -> str:
        found = []
        for rank, sums in enumerate(self.calls.sums_at(seconds).tolist()):
            left, top = self.corner(rank, 0) - EDGE - np.array([0.0, HEAD - EDGE])
            width, height = 2 * self.half(rank) + 2 * EDGE + np.array([0.0, HEAD - EDGE])
            worker = rank < self.calls.workers
            name = self._name(rank, short=worker and len(f"rank {self.calls.workers - 1}") * LETTER > width)
            found.append(
                f'<rect class="card{"" if worker else " server"}" x="{left:.1f}" y="{top:.1f}" '
                f'width="{width:.1f}" height="{height:.1f}" rx="4"/>'
                f'<text class="rank" x="{self.centres[rank][0]:.1f}" y="{top + 11.5:.1f}">{name}</text>'
                + "".join(self._chunk(rank, chunk, value) for chunk, value in enumerate(sums))
            )
        return "".join(found)

    def _chunk(self, rank: int, chunk: int, value: int) -> str:
        (x, y), cell = self.corner(rank, chunk), self.cells[rank]
        whole = int(self.calls.parts[rank, chunk])
        full = min(abs(value) / whole, 1.0) * cell if whole else 0.0
        state = "twice" if value < 0 else "complete" if value == whole and whole else "partial"
        number = (
            f'<text class="number" x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}">{abs(value) or ""}</text>'
            if cell >= LETTER * (len(str(self.calls.workers)) + 1)
            else ""
        )
        return (
            f'<rect class="level k{chunk}" x="{x:.2f}" y="{y + cell - full:.2f}" '
            f'width="{cell:.2f}" height="{full:.2f}"/>'
            f'<rect class="cell {state}" x="{x:.2f}" y="{y:.2f}" '
            f'width="{cell:.2f}" height="{cell:.2f}"/>{number}'
        )

    def _flows(self, seconds: float) -> str:
        lines = "".join(
            f'<line class="flow" {_line(self.track(one.source, one.target))} '
            f'stroke-width="{self.flow(one.num_bytes / (one.end_seconds - one.start_seconds)):.2f}"/>'
            for one, _ in self.calls.under_way(seconds)
        )
        return f'<g class="flows">{lines}</g>'

    def _packets(self, seconds: float) -> str:
        found = []
        for one, share in self.calls.under_way(seconds):
            chunks = len(one.sums)
            x, y = _along(self.way(one.source, one.target, one.chunk, chunks), share)
            length, height, single = self.packet
            if chunks == 1:
                length = height = single
            stripes = "".join(
                f'<rect class="k{one.chunk + place}" x="{place * length / chunks - length / 2:.2f}" '
                f'y="{-height / 2:.2f}" width="{length / chunks:.2f}" height="{height:.2f}"/>'
                for place in range(chunks)
            )
            frame = (
                f'<rect class="frame" x="{-length / 2:.2f}" y="{-height / 2:.2f}" '
                f'width="{length:.2f}" height="{height:.2f}"/>'
            )
            found.append(f'<g class="packet" transform="translate({x:.2f},{y:.2f})">{stripes}{frame}</g>')
        return f'<g class="packets">{"".join(found)}</g>'

    def _chart(self, seconds: float) -> str:
        ticks = "".join(
            f'<line class="tick" x1="{CHART_LEFT}" x2="{CHART_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="scale" x="{CHART_LEFT - 6}" y="{y + 4:.1f}">{show(value, "byte")}</text>'
            for value in _ticks(self.most_bytes)
            for y in [CHART_FLOOR - self.height(value)]
        )
        found = self.calls.bytes_at(seconds)
        bars = "".join(
            f'<rect class="{kind}" x="{left:.2f}" y="{CHART_FLOOR - tall:.2f}" '
            f'width="{width:.2f}" height="{tall:.2f}"/>'
            for direction, kind in enumerate(("up", "down"))
            for rank, value in enumerate(found[direction])
            for (left, width), tall in [(self.bar(rank, direction), self.height(float(value)))]
        )
        most = float(np.max(found))
        direction, rank = divmod(int(np.argmax(np.asarray(found) >= ABOUT * most)), self.calls.ranks)
        left, width = self.bar(rank, direction)
        number = (
            f'<text class="most" x="{np.clip(left + width / 2, *MOST_BETWEEN):.2f}" '
            f'y="{CHART_FLOOR - self.height(most) - 4:.2f}">{show(most, "byte")}</text>'
        )
        short = (CHART_RIGHT - CHART_LEFT) / self.calls.ranks < 46
        names = "".join(
            f'<text class="rank" x="{sum(self.bar(rank, 0)):.1f}" y="{CHART_FLOOR + 14}">'
            f"{self._name(rank, short=short)}</text>"
            for rank in range(self.calls.ranks)
        )
        return (
            f'<text class="title" x="8" y="414">bytes of each NIC</text>'
            f'<rect class="up" x="236" y="405" width="10" height="10"/>'
            f'<text class="key" x="250" y="414">sent (up)</text>'
            f'<rect class="down" x="322" y="405" width="10" height="10"/>'
            f'<text class="key" x="336" y="414">received (down)</text>'
            f'{ticks}<g class="bars">{bars}</g>{number}'
            f'<line class="axis" x1="{CHART_LEFT}" x2="{CHART_RIGHT}" y1="{CHART_FLOOR}" y2="{CHART_FLOOR}"/>{names}'
        )

    def _name(self, rank: int, *, short: bool = False) -> str:
        servers = self.calls.ranks - self.calls.workers
        if rank < self.calls.workers:
            return str(rank) if short else f"rank {rank}"
        number = "" if servers == 1 else str(rank - self.calls.workers)
        return f"S{number}" if short else f"server {number}".strip()


def _around(count: int, radii: Floats) -> Floats:
    """Places around an ellipse, clockwise from the top, with equal ways along it; shape (count, 2)."""
    angles = np.linspace(0.0, 2 * np.pi, STEPS_OF_ARC + 1)
    unit = np.column_stack([np.sin(angles), -np.cos(angles)])
    places = CENTRE + radii * np.sign(unit) * np.abs(unit) ** SQUARENESS
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(places, axis=0).T))])
    wanted = way[-1] * np.arange(count) / max(count, 1)
    return np.column_stack([np.interp(wanted, way, places[:, axis]) for axis in (0, 1)])


def _along(way: Floats, share: float) -> Floats:
    """The place at this share of a way with corners, shape (2,)."""
    far = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(way, axis=0).T))])
    return np.array([np.interp(share * far[-1], far, way[:, axis]) for axis in (0, 1)])


def _ticks(most: float) -> list[float]:
    """Round numbers up to `most`: 1, 2 or 5 of a power of ten, and their multiples.

    >>> _ticks(256e6), _ticks(1.02e9)
    ([100000000.0, 200000000.0], [500000000.0, 1000000000.0])
    """
    power = 10.0 ** floor(log10(most))
    step = next(size * power / 10 for size in (1, 2, 5, 10, 20, 50) if most / (size * power / 10) < TICKS + 1)
    return [step * (place + 1) for place in range(int(most / step))]


def _line(ends: list[float]) -> str:
    return " ".join(f'{name}="{value}"' for name, value in zip(("x1", "y1", "x2", "y2"), ends, strict=True))
