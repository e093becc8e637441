"""`runs`: the list of runs on the command line; what is listed is in observe/run_listing_test.py."""

import json
import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.completion_words import command_words
from tools.launcher.observe.run_testlib import Run, finished_run


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)


def test_no_run_is_an_empty_list(tmp_path, capsysbinary):
    assert run(["runs", "--format=json"]) == exit_codes.OK
    said = capsysbinary.readouterr()
    assert json.loads(said.out) == []
    assert said.err.decode() == f"note: no run is on record yet in file://{tmp_path}/slipway/store\n"


def test_the_forms_of_the_list(tmp_path, capsysbinary):
    cats = finished_run(tmp_path / "slipway")
    name = cats.key.short_name.encode()
    assert run(["runs", f"--store={cats.store.url}"]) == exit_codes.OK
    assert (
        capsysbinary.readouterr()
        .out.splitlines()[1]
        .startswith(name + b"  1        succeeded  -         rl  ")
    )
    assert run(["runs", "--format=markdown"]) == exit_codes.OK
    assert (
        capsysbinary.readouterr()
        .out.splitlines()[2]
        .startswith(b"| " + name + b" | 1 | succeeded | - | rl |")
    )
    assert run(["runs", "--format=json", "--state=succeeded", "--since=1h", "--version=1"]) == exit_codes.OK
    (found,) = json.loads(capsysbinary.readouterr().out)
    assert (found["run"], found["state"], found["experiment"]) == (cats.key.short_name, "succeeded", "cats")


def test_what_is_not_shown_is_said(tmp_path, capsys):
    cats = finished_run(tmp_path / "slipway")
    cats.key = cats.key.model_copy(update={"ordinal": 2})
    cats.event("intent")
    assert run(["runs", "--limit=1"]) == exit_codes.OK
    said = capsys.readouterr()
    assert "/2 " in said.out and said.err == "note: 1 older run was not read; --limit=4 shows more\n"
    assert run(["runs", "--state=failed"]) == exit_codes.OK
    assert capsys.readouterr().err == f"note: no run on record in {cats.store.url} fits\n"
    assert run(["runs", "--experiment=dogs"]) == exit_codes.OK
    assert capsys.readouterr().err == (
        f"note: no run of 'dogs' is on record in {cats.store.url}. There are runs of: cats\n"
    )


def test_a_name_that_is_none_is_answered_with_those_that_may_be_meant(tmp_path, capsys):
    cats = finished_run(tmp_path / "slipway")
    assert run(["runs", "--experiment=cat"]) == exit_codes.OK
    assert capsys.readouterr().err == (
        f"note: no run of 'cat' is on record in {cats.store.url}. Did you mean cats? All that begin so: "
        "--experiment='cat*'\n"
    )
    assert run(["runs", "--experiment=kats"]) == exit_codes.OK
    assert capsys.readouterr().err.endswith(". Did you mean cats?\n")
    assert run(["runs", "cats", "--state=failed"]) == exit_codes.USAGE
    assert capsys.readouterr().err == "error: 'cats' is no flag. Did you mean --experiment=cats?\n"
    assert run(["runs", "c*"]) == exit_codes.USAGE
    assert capsys.readouterr().err == "error: 'c*' is no flag. Did you mean --experiment='c*'?\n"


def test_what_is_no_argument_is_in_no_help_and_in_no_completion(capsys):
    with pytest.raises(SystemExit):
        run(["runs", "--help"])
    assert "words" not in capsys.readouterr().out
    (words,) = (command for command in command_words() if command.name == "runs")
    assert words.positional == ()


def test_a_damaged_record_is_named_and_hides_no_other(tmp_path, capsys):
    cats = Run(tmp_path / "slipway")
    name = cats.key.short_name
    cats.key = cats.key.model_copy(update={"ordinal": 2})
    cats.event("intent")
    next((tmp_path / "slipway" / "store").rglob("2/events/0001.json")).write_text("{")
    assert run(["runs"]) == exit_codes.OK
    said = capsys.readouterr()
    assert name in said.out and said.err.startswith("note: left out: event runs/cats/")


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--limit=0", "--limit=0: nothing would be shown. Give a number from 1"),
        (
            "--runtime=main",
            "--runtime=main: that begins no commit. Give at least 4 of its lower-case hex digits",
        ),
        (
            "--since=soon",
            "--since: 'soon' is no moment. Give a span before now such as 12h or 7d, a date such as ",
        ),
    ],
)
def test_flags_that_cannot_be_meant(flag, sentence, capsys):
    assert run(["runs", flag]) == exit_codes.USAGE
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_a_state_that_is_none_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        run(["runs", "--state=done"])
    assert caught.value.code == exit_codes.USAGE
    assert "invalid choice: 'done' (choose from" in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
