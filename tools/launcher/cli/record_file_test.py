"""`--record FILE.md` of status and verify."""

import os
import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.observe.run_markdown import MARK
from tools.launcher.observe.run_testlib import TMP, Run, finished_run


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER", "BUILD_WORKING_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


def test_verify_writes_the_answer_with_its_evidence(tmp_path, capsys):
    cats, page = finished_run(tmp_path / "slipway"), tmp_path / "run.md"
    for _ in range(2):  # What this flag wrote, it may replace.
        assert run(["verify", "cats", f"--record={page}"]) == exit_codes.OK
        assert capsys.readouterr().out.endswith(f"written: {page}\n")
    lines = page.read_text().splitlines()
    assert lines[:5] == [MARK, "", f"## Run {cats.key.short_name}", "", "**Verified: yes**"]
    assert "| state | succeeded |" in lines
    assert f"| launch digest | sha256:{cats.key.launch_digest} |" in lines
    facts = [line for line in lines if " | yes | " in line]
    assert len(facts) == 4 and facts[0].startswith(r"| tasks\_joined | yes | ranks 0, 1 | local://lab/tmp/")
    assert lines[-1] == "rehearsal: a CPU stand-in ran this plan; no language model was trained"


def test_what_is_missing_is_written_too(tmp_path):
    cats, page = finished_run(tmp_path / "slipway"), tmp_path / "run.md"
    cats.path(f"{TMP}/attempts/{cats.attempt}/joined/1.json").unlink()
    assert run(["verify", "cats", f"--record={page}"]) == exit_codes.FAILED
    text = page.read_text()
    assert "**Verified: no**" in text
    assert "| no | ranks 0; missing ranks: 1 (expected: 2 tasks, ranks 0, 1) |" in text


def test_status_writes_where_a_run_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    cats = Run(tmp_path / "slipway", topology={"num_nodes": 2, "gpus_per_node": 8, "gpu_variant": "H100"})
    cats.submit()
    cats.event("failed", reason="a | b\n<script> @all")
    assert run(["status", "--record=run.md"]) == exit_codes.OK
    text = (tmp_path / "run.md").read_text()
    assert r"| state | failed: a \| b \<script\> &#64;all |" in text
    assert "| nodes | 2 x 8 H100 |" in text and "| steps | 0/3 |" in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("run.txt", "--record={0}/run.txt: a Markdown file is written. Give it a name that ends in .md"),
        ("no/run.md", "--record={0}/no/run.md: there is no folder {0}/no. Make it first"),
        ("folder.md", "--record={0}/folder.md: Is a directory. Name a file that can be written"),
        ("pipe.md", "--record={0}/pipe.md: this is a pipe or a device. Name a file"),
        (
            "README.md",
            (
                "--record={0}/README.md: the file is there and was not written by this flag. Name another one, or move it "
                "away"
            ),
        ),
    ],
)
def test_no_other_file_is_written(tmp_path, capsys, name, sentence):
    finished_run(tmp_path / "slipway")
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "README.md").write_text("# Mine\n")
    for command in ("status", "verify"):
        assert run([command, "cats", f"--record={tmp_path / name}"]) == exit_codes.USAGE
        assert capsys.readouterr().err == f"error: {sentence.format(tmp_path)}\n"
    assert (tmp_path / "README.md").read_text() == "# Mine\n"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
