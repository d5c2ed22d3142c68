"""The switch: what matches what, when it ends, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim import collectives
from distsim.cluster import Cluster
from distsim.engine import collective as simulated
from distsim.testbed.operations import Join, Receive, Send
from distsim.testbed.switch import LOOK_SECONDS, DeadlockError, Switch
from distsim.theory.collectives import ring_all_reduce_seconds

MB = np.zeros(10**6, dtype=np.uint8)


def cluster(workers: int, **links: object) -> Cluster:
    return Cluster.model_validate({"workers": workers, "bandwidth": "1 MB/s", "latency": "10 ms", **links})


def send(target: int, data: np.ndarray = MB, tag: int = 0) -> Send:
    return Send(target, tag, "", data)


def receive(source: int | None, num_bytes: int = 10**6, tag: int = 0) -> Receive:
    return Receive(source, tag, "", num_bytes)


def join(kind: str, ranks: int, *given: np.ndarray, root: int = 0) -> Join:
    return Join(kind, "", tuple(range(ranks)), root, "sum", given)


def test_two_sends_share_the_down_link_of_their_target() -> None:
    switch = Switch(cluster(3))
    for rank in (1, 2):
        switch.post(rank, 1, send(0))
        switch.wait(rank, [1])
        switch.post(0, rank, receive(rank))
    switch.wait(0, [1, 2])
    assert [reply.rank for reply in switch.settle()] == [0, 1, 2]
    assert switch.now == pytest.approx(2.01, rel=1e-12)  # the latency, and 2 MB through 1 MB/s


def test_a_slow_nic_slows_its_own_transfer_alone() -> None:
    switch = Switch(cluster(4, nic={2: {"up": "0.1 MB/s"}}))
    for source, target in ((0, 1), (2, 3)):
        switch.post(source, 1, send(target))
        switch.post(target, 1, receive(source))
        switch.wait(source, [1])
        switch.wait(target, [1])
    assert [(reply.rank, round(reply.now, 9)) for reply in switch.settle()] == [(0, 1.01), (1, 1.01)]
    switch.leave(0)
    switch.leave(1)
    assert [(reply.rank, round(reply.now, 9)) for reply in switch.settle()] == [(2, 10.01), (3, 10.01)]


def test_a_transfer_begins_when_both_sides_are_ready() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, send(1))
    switch.wait(0, [1])
    switch.busy(1, 5.0, "compute")
    assert [reply.rank for reply in switch.settle()] == [1]
    switch.post(1, 1, receive(0))
    switch.wait(1, [1])
    switch.settle()
    [message] = switch.log.messages
    assert (message.posted_seconds, message.started_seconds) == (0.0, 5.0)
    assert message.ended_seconds == pytest.approx(6.01, rel=1e-12)


@pytest.mark.parametrize("first", [1, 2])
def test_a_receive_from_anybody_takes_the_lowest_rank_of_one_instant_in_whatever_order_they_came(first: int) -> None:
    switch = Switch(cluster(3))
    switch.post(0, 1, receive(None))
    switch.wait(0, [1])
    for rank in (first, 3 - first):
        switch.post(rank, 1, send(0))
        switch.wait(rank, [1])
    replies = switch.settle()
    assert replies[0].done[1].source == 1


def test_a_receive_from_anybody_takes_the_earlier_send_of_a_higher_rank() -> None:
    switch = Switch(cluster(3))
    switch.busy(0, 1.0, "compute")
    switch.busy(1, 0.5, "compute")
    switch.post(2, 1, send(0))
    switch.wait(2, [1])
    assert [reply.rank for reply in switch.settle()] == [1]
    switch.post(1, 1, send(0))
    switch.wait(1, [1])
    assert [reply.rank for reply in switch.settle()] == [0]
    switch.post(0, 1, receive(None))
    switch.wait(0, [1])
    assert switch.settle()[0].done[1].source == 2


def test_tags_and_order_keep_messages_apart() -> None:
    switch = Switch(cluster(2))
    for key, (tag, value) in enumerate([(7, 1), (8, 2), (7, 3)]):
        switch.post(0, key, send(1, np.array([value], dtype=np.uint8), tag))
    for key, tag in enumerate([8, 7, 7]):
        switch.post(1, key, receive(0, 1, tag))
    switch.wait(0, [0, 1, 2])
    switch.wait(1, [0, 1, 2])
    reply = switch.settle()[-1]
    assert [int(reply.done[key].received[0][0]) for key in range(3)] == [2, 1, 3]


def test_a_message_larger_than_its_room_is_an_error_on_both_sides() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, send(1))
    switch.post(1, 1, receive(0, 10))
    switch.wait(0, [1])
    switch.wait(1, [1])
    errors = [reply.done[1].error for reply in switch.settle()]
    assert errors == ["rank 0 sent 1000000 bytes to rank 1, which had room for 10"] * 2


def test_a_circle_of_sends_is_a_deadlock_that_names_its_ranks() -> None:
    switch = Switch(cluster(3))
    for rank in range(3):
        switch.post(rank, 1, send((rank + 1) % 3))
        switch.wait(rank, [1], where=f"tasks.py:{rank}")
    with pytest.raises(DeadlockError) as caught:
        switch.settle()
    assert caught.value.waits[0] == "waits in send to rank 1 (tasks.py:0)"
    assert set(caught.value.waits) == {0, 1, 2}


def test_a_wait_for_a_rank_that_has_ended_says_so() -> None:
    switch = Switch(cluster(3))
    switch.leave(2)
    switch.post(0, 1, join("barrier", 3))
    switch.wait(0, [1])
    switch.post(1, 1, receive(2))
    switch.wait(1, [1])
    with pytest.raises(DeadlockError) as caught:
        switch.settle()
    assert caught.value.waits == {
        0: "waits in barrier for rank 1, rank 2, which has ended",
        1: "waits in recv from rank 2, which has ended",
    }


def test_what_is_posted_before_a_rank_leaves_still_arrives() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, send(1))
    switch.leave(0)
    switch.post(1, 1, receive(0))
    switch.wait(1, [1])
    [reply] = switch.settle()
    assert (reply.rank, reply.done[1].error) == (1, None)


def test_collectives_of_a_group_follow_one_another_and_take_what_their_formula_says() -> None:
    switch = Switch(cluster(4))
    for rank in range(4):
        for key in (1, 2):
            switch.post(rank, key, join("all_reduce", 4, np.full(250_000, key + rank, dtype=np.float32)))
        switch.wait(rank, [1, 2])
    replies = switch.settle()
    one = ring_all_reduce_seconds(10**6, 4, 1e6, 0.01)
    assert [entry.ended_seconds for entry in switch.log.collectives] == pytest.approx([one, 2 * one], rel=1e-12)
    assert replies[2].done[2].received[0][0] == 2 + 3 + 4 + 5


def test_ranks_in_different_collectives_are_told() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, join("barrier", 2))
    switch.post(1, 1, join("all_reduce", 2, MB))
    switch.wait(0, [1])
    switch.wait(1, [1])
    text = "ranks call different collectives: rank 0 calls barrier; rank 1 calls all_reduce"
    assert [reply.done[1].error for reply in switch.settle()] == [text, text]


def test_tensors_that_do_not_fit_together_are_told() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, join("all_reduce", 2, np.zeros(3)))
    switch.post(1, 1, join("all_reduce", 2, np.zeros(4)))
    switch.wait(0, [1])
    switch.wait(1, [1])
    assert "shapes or types: [[3]] and [[4]]" in str(switch.settle()[0].done[1].error)


def test_a_question_whether_an_operation_is_over_takes_a_little_time_so_that_asking_again_and_again_ends() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, receive(1))
    switch.post(1, 1, send(0))
    switch.wait(1, [1])
    looks = 0
    while not switch.log.messages:
        switch.look(0, 1)
        switch.settle()
        looks += 1
    assert looks == pytest.approx(1.01 / LOOK_SECONDS, rel=0.01)


def ring_of_messages(switch: Switch, ranks: int, chunk: np.ndarray) -> None:
    """Each rank as a generator that posts a ring all-reduce and yields what it waits for."""

    def run(rank: int) -> Iterator[list[int]]:
        for turn in range(2 * (ranks - 1)):
            switch.post(rank, 2 * turn, send((rank + 1) % ranks, chunk))
            switch.post(rank, 2 * turn + 1, receive((rank - 1) % ranks, chunk.nbytes))
            yield [2 * turn, 2 * turn + 1]

    stories = [run(rank) for rank in range(ranks)]
    for rank, story in enumerate(stories):
        switch.wait(rank, next(story))
    while not switch.over:
        for reply in switch.settle():
            keys = next(stories[reply.rank], None)
            if keys is None:
                switch.leave(reply.rank)
            else:
                switch.wait(reply.rank, keys)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.floats(0.0, 0.1), st.floats(0.05, 5.0), st.integers(1, 10**5))
def test_a_ring_of_messages_takes_what_the_simulator_says(
    ranks: int, latency: float, slow: float, num_bytes: int
) -> None:
    links = cluster(ranks, latency=f"{latency!r} s", nic={1: {"up": f"{slow!r} MB/s"}})
    switch = Switch(links)
    ring_of_messages(switch, ranks, np.zeros(num_bytes, dtype=np.uint8))
    expected = max(simulated.run(collectives.ring(ranks), links, float(ranks * num_bytes)).ends_seconds)
    assert switch.now == pytest.approx(expected, rel=1e-9)


def test_messages_of_one_pair_arrive_one_after_the_other() -> None:
    switch = Switch(cluster(3))
    for key in (1, 2):
        switch.post(0, key, send(1))
        switch.post(1, key, receive(0))
    switch.post(0, 3, send(2))
    switch.post(2, 3, receive(0))
    switch.wait(0, [1, 2, 3])
    switch.wait(1, [1, 2])
    switch.wait(2, [3])
    while not switch.over:
        for reply in switch.settle():
            switch.leave(reply.rank)
    ended = {(message.target, message.ended_seconds) for message in switch.log.messages}
    times = [pytest.approx(seconds, rel=1e-12) for seconds in (2.01, 2.01, 3.01)]  # two, and then one share the link
    assert sorted(ended) == [(1, times[0]), (1, times[2]), (2, times[1])]


def test_what_is_watched_wakes_a_rank_that_computes_and_then_goes_on() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, send(1))
    switch.post(1, 1, receive(0))
    switch.wait(1, [1])
    switch.busy(0, 5.0, "compute", watch=[1])
    replies = {reply.rank: reply for reply in switch.settle()}
    assert (replies[0].again, list(replies[0].done), replies[0].now) == (True, [1], pytest.approx(1.01, rel=1e-12))
    switch.leave(1)
    switch.resume(0, 9.0)  # at most to the end of what it computes
    [last] = switch.settle()
    assert (last.again, last.now) == (False, 5.0)


def test_a_wait_ends_when_its_time_is_over_and_the_operation_goes_on() -> None:
    switch = Switch(cluster(2))
    switch.post(0, 1, receive(1))
    switch.wait(0, [1], seconds=0.5)
    switch.busy(1, 2.0, "compute")
    [reply] = switch.settle()
    assert (reply.rank, reply.now, reply.done, reply.again) == (0, 0.5, {}, False)
    switch.wait(0, [1])
    switch.settle()
    switch.post(1, 1, send(0))
    switch.wait(1, [1])
    assert {reply.rank for reply in switch.settle()} == {0, 1}


def test_what_a_rank_never_waits_for_is_in_the_log_if_it_finishes() -> None:
    for finished in (True, False):
        switch = Switch(cluster(2))
        switch.post(0, 1, send(1), "tasks.py:3 in f")
        switch.leave(0, finished=finished)
        assert list(map(str, switch.log.unwaited)) == (
            ["rank 0 never waits for its isend to rank 1 (tasks.py:3 in f)"] if finished else []
        )
