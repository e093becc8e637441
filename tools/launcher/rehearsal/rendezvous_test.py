import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest

from tools.launcher.rehearsal.rendezvous import RENDEZVOUS_FILE, GangError, PeerLost, join_gang

SPAWN = multiprocessing.get_context("spawn")


def _member(folder, rank, world_size, results, behaviour):
    try:
        gang = join_gang(
            folder, token="attempt", rank=rank, world_size=world_size, join_seconds=20, step_seconds=3
        )
        total = gang.sum(np.array([float(rank + 1), 0.1 * rank]), "numbers")
        if behaviour == "die" and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if behaviour == "stall" and rank == 1:
            time.sleep(60)
        if behaviour == "abort" and rank == 1:
            gang.abort("the disk is full")
            return
        parts = gang.exchange(f"from {rank}".encode(), "words")
        gang.agree(str(rank % 2) if behaviour == "disagree" else "same", "colour")
        gang.close()
        results.put((rank, total.tolist(), [part.decode() for part in parts]))
    except GangError as error:
        results.put((rank, type(error).__name__, str(error)))


def _run(folder, world_size, behaviour="good"):
    results = SPAWN.Queue()
    processes = [
        SPAWN.Process(target=_member, args=(folder, rank, world_size, results, behaviour))
        for rank in range(world_size)
    ]
    for process in processes:
        process.start()
    missing = 1 if behaviour in ("die", "stall", "abort") else 0
    answers = {
        answer[0]: answer[1:] for answer in (results.get(timeout=40) for _ in range(world_size - missing))
    }
    for process in processes:
        process.kill()
        process.join(10)
    return answers


def test_three_processes_sum_and_exchange_in_rank_order(tmp_path):
    answers = _run(tmp_path, 3)
    expected = [0.0 + 1.0 + 2.0 + 3.0, (0.0 + 0.0 + 0.1) + 0.2]
    for rank in range(3):
        assert answers[rank] == (expected, ["from 0", "from 1", "from 2"])


def test_a_peer_that_dies_is_named_by_the_others_at_once(tmp_path):
    started = time.monotonic()
    answers = _run(tmp_path, 3, "die")
    assert time.monotonic() - started < 20
    assert answers[0] == ("PeerLost", "lost rank 1: its connection was closed")
    assert answers[2][0] == "PeerLost"
    assert "rank 0" in answers[2][1]


def test_a_peer_that_stalls_is_named_after_the_limit(tmp_path):
    answers = _run(tmp_path, 3, "stall")
    assert answers[0] == ("GangError", "ranks [1] did not reach 'words' within 3 s")
    assert answers[2][0] in ("GangError", "PeerLost")


def test_a_peer_that_gives_up_tells_why(tmp_path):
    assert _run(tmp_path, 2, "abort")[0] == ("PeerLost", "rank 1 reports: the disk is full")


def test_ranks_that_hold_different_things_are_named(tmp_path):
    answers = _run(tmp_path, 3, "disagree")
    for rank in range(3):
        assert answers[rank] == ("GangError", "colour: ranks [1] hold '1', rank 0 holds '0'")


def _join(folder, rank, **changes):
    values = {"token": "attempt", "world_size": 2, "join_seconds": 1.0, "step_seconds": 5.0, **changes}
    return join_gang(folder, rank=rank, **values)


def test_missing_ranks_are_named(tmp_path):
    with pytest.raises(GangError) as caught:
        _join(tmp_path, 0, world_size=3)
    assert str(caught.value) == "1 of 3 tasks joined within 1 s; missing ranks: [1, 2]"


def test_a_head_that_never_comes_is_named(tmp_path):
    with pytest.raises(GangError) as caught:
        _join(tmp_path, 1)
    assert str(caught.value) == (
        "rank 1 could not join rank 0 within 1 s: rank 0 has not published its address"
    )


def test_a_stale_address_is_left_behind_when_the_head_comes(tmp_path):
    # What an earlier start of rank 0 left: its port now belongs to somebody else.
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        (tmp_path / RENDEZVOUS_FILE).write_text(
            json.dumps({"host": "127.0.0.1", "port": port, "nonce": "old"})
        )
        gangs = {}

        def late():
            gangs[1] = _join(tmp_path, 1, join_seconds=20.0)

        thread = threading.Thread(target=late)
        thread.start()
        connection, _ = stranger.accept()
        connection.close()
        gangs[0] = _join(tmp_path, 0, join_seconds=20.0)
        thread.join(20)
    assert gangs[1].rank == 1
    for gang in gangs.values():
        gang.close()


def test_a_task_of_another_gang_is_turned_away(tmp_path):
    problems = []

    def stranger():
        try:
            _join(tmp_path, 1, token="other", join_seconds=2.0)
        except GangError as error:
            problems.append(str(error))

    thread = threading.Thread(target=stranger)
    thread.start()
    with pytest.raises(GangError, match=r"1 of 2 tasks joined within 2 s; missing ranks: \[1\]"):
        _join(tmp_path, 0, join_seconds=2.0)
    thread.join(10)
    assert "rank 1 could not join rank 0 within 2 s" in problems[0]


def test_ranks_in_different_operations_do_not_mix(tmp_path):
    results = {}

    def member(rank):
        gang = _join(tmp_path, rank, join_seconds=10.0)
        try:
            gang.barrier("here" if rank == 0 else "there")
        except GangError as error:
            results[rank] = error
        gang.close()

    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert isinstance(results[0], PeerLost)
    assert str(results[0]) == "rank 1 is in operation '0:there', rank 0 in '0:here'"


def test_a_gang_of_one_needs_nobody(tmp_path):
    gang = _join(tmp_path, 0, world_size=1)
    assert gang.sum(np.array([1.5]), "numbers").tolist() == [1.5]
    assert not list(tmp_path.iterdir())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
