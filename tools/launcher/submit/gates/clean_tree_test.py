import sys

import pytest

from tools.launcher.submit.gates.clean_tree import clean_tree
from tools.launcher.submit.source_state import SourceState

COMMIT = "c" * 40


def source(dirty: bool | None, *changed: str, note: str = "") -> SourceState:
    return SourceState(
        who="ada@lab",
        when="2026-11-30T12:00:00Z",
        source_commit=None if dirty is None else COMMIT,
        dirty=dirty,
        note=note,
        changed=changed,
    )


def test_a_clean_checkout_passes():
    gate = clean_tree(source(False))
    assert (gate.state, gate.found, gate.fix) == ("passed", f"nothing differs from commit {COMMIT}", "")


def test_a_dirty_checkout_names_files_and_both_ways_on():
    gate = clean_tree(source(True, "a.py", "b/"))
    assert gate.state == "missing"
    assert gate.found == f"the checkout differs from commit {COMMIT}: a.py, b/"
    assert gate.fix == "git commit, then launch again; or launch with --allow-dirty, which is recorded"


def test_of_many_files_five_are_named():
    found = clean_tree(source(True, *(f"f{number}" for number in range(7)))).found
    assert found.endswith(": f0, f1, f2, f3, f4 and 2 more")
    assert "f5" not in found


def test_a_file_name_stays_on_its_line():
    assert clean_tree(source(True, "a\n\x1b[31mb")).found.endswith(": a  [31mb")


def test_an_unknown_source_says_why():
    gate = clean_tree(source(None, note="source unknown: there is no `git` command"))
    assert gate.state == "missing"
    assert gate.found == (
        "source unknown: there is no `git` command: whether a commit has what is launched is not known"
    )
    assert gate.fix == "launch with `tools/bazel run` from a git checkout, or with --allow-dirty"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
