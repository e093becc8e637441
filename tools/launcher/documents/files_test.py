import multiprocessing
import sys

import pytest

from tools.launcher.documents.files import write_atomically, write_once


def test_write_atomically_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "deep" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_write_once_keeps_the_first(tmp_path):
    path = tmp_path / "file"
    assert write_once(path, b"first")
    assert not write_once(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def _claim(arguments):
    path, number = arguments
    return write_once(path, str(number).encode())


def test_one_of_many_processes_wins(tmp_path):
    path = tmp_path / "claim"
    with multiprocessing.Pool(4) as pool:
        won = pool.map(_claim, [(path, number) for number in range(16)])
    assert sum(won) == 1
    assert path.read_bytes() == str(won.index(True)).encode()


def test_a_failing_write_leaves_the_old_content(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, None)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
