"""Tests of where the embedded cluster keeps its things."""

import sys
from pathlib import Path

import pytest

from tools.launcher.iris.local.state import (
    DaemonRecord,
    LocalClusterError,
    StateFolderUnusable,
    local_paths,
    read_record,
    state_dir,
    write_record,
)

RECORD = DaemonRecord(
    schema_version=1,
    pid=7,
    start_ticks=11,
    boot_id="b",
    url="http://127.0.0.1:1",
    port=1,
    runtime_digest="d",
    started_at="2026-11-30T12:00:00+00:00",
    nonce="n",
)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/slipway"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/slipway"),
        ({"XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/slipway"),
        ({"HOME": "/h"}, "/h/.local/state/slipway"),
    ],
)
def test_the_state_folder_follows_xdg(environ: dict[str, str], folder: str) -> None:
    assert state_dir(environ) == Path(folder)


def test_no_state_folder() -> None:
    with pytest.raises(LocalClusterError) as caught:
        state_dir({"XDG_STATE_HOME": "here"})
    assert str(caught.value) == (
        "no place for local state: XDG_STATE_HOME is 'here' and HOME is ''; "
        "set one of them to an absolute path"
    )


@pytest.mark.parametrize("folder", ["/a/50%20", "/a#b", "/a?", "/a/../b", "/a\nb", "/a\udcff"])
def test_a_folder_that_no_address_can_name(folder: str) -> None:
    with pytest.raises(StateFolderUnusable) as caught:
        state_dir({"XDG_STATE_HOME": folder})
    assert str(caught.value) == (
        f"the state folder {folder + '/slipway'!r} can't be part of an address: its path has '..', one of "
        "%?#, or a character that can't be printed; set XDG_STATE_HOME to a folder without them"
    )


def test_spaces_and_letters_of_all_scripts_are_no_problem() -> None:
    assert state_dir({"XDG_STATE_HOME": "/my state 'x'/日本"}) == Path("/my state 'x'/日本/slipway")


def test_a_record_comes_back(tmp_path: Path) -> None:
    paths = local_paths(tmp_path)
    assert read_record(paths) is None
    write_record(paths, RECORD)
    assert read_record(paths) == RECORD


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"pid": "7"}', b"\xff"])
def test_a_spoilt_record_is_no_record(tmp_path: Path, content: bytes) -> None:
    paths = local_paths(tmp_path)
    paths.root.mkdir()
    paths.daemon_record.write_bytes(content)
    assert read_record(paths) is None


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
