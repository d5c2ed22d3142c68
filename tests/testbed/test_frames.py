"""Frames: what goes in comes out, and rubbish comes out as an error and nothing else."""

from __future__ import annotations

import struct

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.cluster import Cluster
from distsim.testbed.frames import DTYPES, MOST_HEAD_BYTES, FrameError, Frames, pack
from distsim.testbed.rank_requests import RankRequests, RequestError
from distsim.testbed.switch import Switch

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=10,
)


@given(plain, st.integers(1, 7))
def test_values_come_out_as_they_went_in_however_the_stream_is_cut(value: object, size: int) -> None:
    data, frames, found = pack([value]) + pack("next"), Frames(), []
    for begin in range(0, len(data), size):
        found += frames.feed(data[begin : begin + size])
    assert found == [[value], "next"]


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_arrays_keep_type_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    [found] = Frames().feed(pack(array))
    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())


@pytest.mark.parametrize("value", [object(), np.array(["text"]), np.array([object()]), {1, 2}, print])
def test_code_and_objects_cannot_pass(value: object) -> None:
    with pytest.raises(TypeError, match="cannot pass"):
        pack(value)


def test_a_frame_that_would_be_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(FrameError, match="at most"):
        list(Frames().feed(struct.pack(">I", 2**31)))


def frame(head: object, data: bytes = b"") -> bytes:
    packed = head if isinstance(head, bytes) else msgpack.packb(head)
    return struct.pack(">II", 4 + len(packed) + len(data), len(packed)) + packed + data


def array(dtype: object, shape: object, code: int = 1) -> msgpack.ExtType:
    return msgpack.ExtType(code, msgpack.packb([dtype, shape]))


@pytest.mark.parametrize(
    "data",
    [
        frame(array("|O", [1]), b"12345678"),
        frame(array("<f8", [2]), b"12345678"),
        frame(array("<f8", [-1]), b"12345678"),
        frame(array("<f8", [2**63, 2]), b"12345678"),
        frame(array("<f8", [2**63, 0]), b""),
        frame(array("<f8", [1] * 70), b"12345678"),
        frame(array("<f8", 1), b"12345678"),
        frame(array(["<f8"], [1]), b"12345678"),
        frame(array("<f8", [1], code=2), b"12345678"),
        frame([array("<f8", [1])] * 2, b"12345678"),
        frame([array("<f8", [1])], b"123456789"),
        frame({"at": msgpack.Timestamp(1)}),
        frame([msgpack.Timestamp(1)]),
        frame(b"\xc1"),
        frame(b"\x91\x91\x91"),
        frame(b"\x91" * 2000),
        frame(b"\xa3\xed\xa0\x80"),  # half of a surrogate pair
        frame(b"\x81\x90\x01"),
        struct.pack(">II", 8, 2**30) + b"1234",
        struct.pack(">I", 1) + b"\xc0",
    ],
)
def test_rubbish_is_an_error_of_frames(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(Frames().feed(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_values_or_an_error_of_frames(body: bytes) -> None:
    for data in (struct.pack(">I", len(body)) + body, frame(body)):
        try:
            values = list(Frames().feed(data))
        except FrameError:
            continue
        assert all(plain(value) for value in values)


def plain(value: object) -> bool:
    """Whether it is of the kinds that a frame may hold."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(one) for key, one in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray)


def test_many_small_objects_are_no_frame() -> None:
    with pytest.raises(FrameError, match="outside arrays"):
        pack([{}] * MOST_HEAD_BYTES)
    with pytest.raises(FrameError, match="a head of"):
        list(Frames().feed(frame(b"\x80" * (MOST_HEAD_BYTES + 1))))


POST = {"do": "post", "key": 1}
JOIN = POST | {"kind": "all_reduce", "group": "", "ranks": [0, 1], "root": 0, "operation": "sum", "data": []}


@pytest.mark.parametrize(
    "request_",
    [
        None, "post", {}, {"do": "fly"}, {"do": "wait", "keys": ["a"], "where": ""}, {"do": "wait", "keys": [1]},
        {"do": "busy", "seconds": -1.0, "kind": ""}, {"do": "busy", "seconds": float("nan"), "kind": ""},
        {"do": "busy", "seconds": 1e9, "kind": ""}, {"do": "look", "key": None}, POST,
        POST | {"kind": "send", "to": 0, "tag": 0, "group": "", "data": np.zeros(1)},
        POST | {"kind": "send", "to": 2, "tag": 0, "group": "", "data": np.zeros(1)},
        POST | {"kind": "send", "to": 1, "tag": 0, "group": "", "data": b"raw"},
        {"do": "wait", "keys": [1], "where": ""}, {"do": "look", "key": 1},
        {"do": "note", "name": "x", "value": np.zeros(2**20)},
        POST | {"kind": "send", "to": 1, "tag": 0, "group": "x" * 1000, "data": np.zeros(1)},
        POST | {"kind": "recv", "source": 1, "tag": 0, "group": "x" * 1000, "bytes": 1},
        JOIN | {"ranks": [[0], 1]}, JOIN | {"ranks": [0.0, 1]}, JOIN | {"ranks": [False, 1]},
        JOIN | {"data": [np.zeros(0)] * 1000}, {"do": "busy", "seconds": float("inf"), "kind": ""},
        POST | {"kind": "recv", "source": -1, "tag": 0, "group": "", "bytes": 1},
        JOIN | {"ranks": [1]}, JOIN | {"ranks": [0, 2]}, JOIN | {"ranks": [0, "1"]}, JOIN | {"root": 2},
        JOIN | {"operation": "eval"}, JOIN | {"kind": "steal"}, JOIN | {"data": ["x"]}, JOIN | {"ranks": [0, 0, 1]},
    ],
)  # fmt: skip
def test_what_no_rank_may_ask_is_refused(request_: object) -> None:
    switch = Switch(Cluster.model_validate({"workers": 2, "bandwidth": "1 MB/s", "latency": "1 ms"}))
    with pytest.raises(RequestError):
        RankRequests(switch).obey(0, request_)
