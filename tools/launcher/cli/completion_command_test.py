"""`completion`: a real bash completes commands, flags and values."""

import re
import subprocess
import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import COMMANDS, run
from tools.launcher.cli.completion_scripts import SCRIPTS
from tools.launcher.cli.completion_words import command_words

WORDS = command_words()


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory):
    """The script, in a file."""
    file = tmp_path_factory.mktemp("completion") / "launcher.bash"
    file.write_text(SCRIPTS["bash"](WORDS))
    return file


def completed(script, *words: str) -> list[str]:
    """What bash offers for the last word, as if Tab had been pressed behind it."""
    # An interactive bash cuts the line into words at spaces and `=`, both of COMP_WORDBREAKS.
    typed = " ".join(f"'{word}'" for word in words)
    code = (
        f". {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _launcher; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-euc", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.stdout.split()


def test_a_command_is_completed(bash_script):
    assert completed(bash_script, "launcher", "sta") == ["status"]
    assert completed(bash_script, "launcher", "") == list(COMMANDS)


def test_a_flag_is_completed(bash_script):
    assert completed(bash_script, "launcher", "affected", "--fa") == ["--fail-on"]
    assert "--store" in completed(bash_script, "launcher", "status", "--")


def test_the_values_of_a_flag_are_completed(bash_script):
    assert completed(bash_script, "launcher", "lint", "--format", "s") == ["sarif"]
    # `--format=s` and `--format=` as bash cuts them.
    assert completed(bash_script, "launcher", "lint", "--format", "=", "s") == ["sarif"]
    assert completed(bash_script, "launcher", "lint", "--format", "=") == ["text", "json", "sarif"]


def test_the_values_of_a_positional_argument_are_completed(bash_script):
    assert completed(bash_script, "launcher", "local", "sto") == ["stop"]


def test_a_value_that_is_a_file_is_left_to_the_shell(bash_script):
    assert completed(bash_script, "launcher", "lint", "--model_card", "") == []
    assert "complete -o default" in bash_script.read_text()


def test_bash_runs_the_checkout_unless_there_is_a_launcher(bash_script, tmp_path):
    program = tmp_path / "launcher"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    for path, kind in (("/usr/bin:/bin", "function"), (f"{tmp_path}:/usr/bin:/bin", "file")):
        done = subprocess.run(
            ["bash", "--norc", "-c", f". {bash_script}; type -t launcher"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": path},
        )
        assert done.stdout.strip() == kind


def test_the_function_finds_the_checkout_from_a_folder_below_it(bash_script, tmp_path):
    root = tmp_path / "a checkout"
    (root / "tools").mkdir(parents=True)
    bazel = root / "tools/bazel"
    bazel.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@"\n')
    bazel.chmod(0o755)
    below = root / "experiments/x"
    below.mkdir(parents=True)
    done = _launcher(bash_script, below)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{below}|run|") and done.stdout.endswith(
        "//tools/launcher|--|runs|--limit=1 2|"
    )
    done = _launcher(bash_script, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"launcher: {tmp_path} is in no checkout of Slipway, which would have tools/bazel. Go into one\n"
    )


def _launcher(script, folder):
    return subprocess.run(
        ["bash", "--norc", "-euc", f". {script}; launcher runs '--limit=1 2'"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_command_and_flag_is_in_the_script(shell, capsys):
    assert run(["completion", shell]) == exit_codes.OK
    script = capsys.readouterr().out
    for command in WORDS:
        assert re.search(rf"\b{command.name}\b", script)
        for word in command.flags:
            assert (f"-l {word.name[2:]} " if shell == "fish" else word.name) in script


def test_the_flags_are_those_that_the_help_shows(capsys):
    for command in WORDS:
        with pytest.raises(SystemExit):
            run([command.name, "--help"])
        shown = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE))
        assert {word.name for word in command.flags} == shown - {"--helpfull"}, command.name


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
