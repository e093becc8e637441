import sys
import time

import pytest

from tools.launcher.cli.launch_waiting import said_if_slow


def test_what_is_quick_is_not_said(capsys):
    with said_if_slow("opening the way"):
        pass
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_what_takes_long_is_said_once(capsys):
    with said_if_slow("opening the way", seconds=0.01):
        time.sleep(0.2)
    assert capsys.readouterr().err == "opening the way ...\n"


def test_a_closed_stream_is_no_error(monkeypatch, tmp_path):
    closed = (tmp_path / "closed").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with said_if_slow("opening the way", seconds=0.01):
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
