"""Agreeing to a submission: with --yes, at a real terminal, and where there is none."""

import io
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from tools.launcher.cli.launch_problems import NotAgreed
from tools.launcher.cli.launch_question import Stakes, agree

STAKES = Stakes(
    experiment="//experiments/gsm8k_grpo:gsm8k_grpo",
    cluster="cw-us-east-02a",
    nodes=2,
    gpus_per_node=8,
    gpu_variant="H100",
    hours=12.5,
    charged="the Iris user slipway, asked for by ann@desk",
)
WORDS = """//experiments/gsm8k_grpo:gsm8k_grpo is going to be submitted:
  cluster    cw-us-east-02a
  nodes      2 x 8 H100
  GPU hours  at most 200 (deadline 12.5 h)
  charged    the Iris user slipway, asked for by ann@desk
"""
SECONDS = 60

PROGRAM = f"""
import sys
from tools.launcher.cli.launch_problems import NotAgreed
from tools.launcher.cli.launch_question import Stakes, agree_here
try:
    agree_here(Stakes.model_validate_json({STAKES.model_dump_json()!r}), yes=False, command="x")
except NotAgreed as problem:
    print(problem)
    sys.exit(3)
"""


def at_a_terminal(keys):
    """Run the question on a terminal of its own, type `keys` when it asks; output and exit status."""
    leader, follower = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        preexec_fn=_take_terminal,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(follower)
    seen = b""
    end = time.monotonic() + SECONDS
    typed = False
    while time.monotonic() < end:
        ready, _, _ = select.select([leader], [], [], 1)
        if ready:
            try:
                data = os.read(leader, 4096)
            except OSError:  # Linux says so when the other side is closed.
                break
            if not data:
                break
            seen += data
        if not typed and b"[y/N] " in seen:
            os.write(leader, keys)
            typed = True
    status = program.wait(timeout=SECONDS)
    os.close(leader)
    return seen.decode().replace("\r\n", "\n"), status


def _take_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("keys", [b"y\n", b"YES\n"])
def test_y_at_a_terminal_agrees(keys):
    seen, status = at_a_terminal(keys)
    assert seen.startswith(WORDS + "Submit it? [y/N] ")
    assert status == 0, seen


@pytest.mark.parametrize("keys", [b"\n", b"n\n", b"yup\n", b"\x04", b"\x03"])
def test_anything_else_at_a_terminal_submits_nothing(keys):
    seen, status = at_a_terminal(keys)
    assert seen.startswith(WORDS + "Submit it? [y/N] ")
    assert seen.endswith("not agreed to; nothing was submitted\n")
    assert status == 3


class Terminal(io.StringIO):
    """A terminal at which Ctrl-C is hit during one of the calls on it, where the signal may arrive."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def isatty(self):
        return True

    def write(self, text):
        count = super().write(text)
        self._hit("write")
        return count

    def flush(self):
        super().flush()
        self._hit("flush")

    def readline(self, size=-1):
        self._hit("readline")
        return "y\n"

    def _hit(self, where):
        if self.at == where:
            self.at = ""
            raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["write", "flush", "readline"])
def test_ctrl_c_submits_nothing_wherever_it_arrives(where):
    """The question is seen before the call that shows it returns, and so the keys may come before that."""
    terminal = Terminal(where)
    with pytest.raises(NotAgreed) as raised:
        agree(STAKES, yes=False, command="x", stdin=terminal, stderr=terminal)
    assert str(raised.value) == "not agreed to; nothing was submitted"
    assert terminal.getvalue() == WORDS + "Submit it? [y/N] \n"


def test_yes_shows_what_is_agreed_to():
    said = io.StringIO()
    agree(STAKES, yes=True, command="x", stdin=io.StringIO(), stderr=said)
    assert said.getvalue() == WORDS


def test_attempts_that_count_are_told():
    stakes = STAKES.model_copy(update={"attempts": 6, "hours": 0.5})
    assert "  GPU hours  at most 48 (6 attempts of 0.5 h)\n" in stakes.words()


def test_without_a_terminal_the_command_that_agrees_is_told():
    with pytest.raises(NotAgreed) as raised:
        agree(STAKES, yes=False, command="launch -- --yes", stdin=io.StringIO("y\n"), stderr=io.StringIO())
    assert str(raised.value) == (
        "cw-us-east-02a is not the local Iris and there is no terminal to ask at; nothing was submitted. To "
        "agree beforehand: launch -- --yes"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
