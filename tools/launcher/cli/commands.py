"""The commands of the launcher, each in a module of its own that is imported when it is asked for."""

import gc
import importlib
import sys
from collections.abc import Sequence

from tools.launcher.cli import exit_codes

COMMANDS: dict[str, tuple[str, str]] = {
    "new": ("new_command", "make an experiment that builds at once, from a template"),
    "launch": (
        "launch_command",
        "submit an experiment's pinned document; usually `bazel run //experiments/x:launch`",
    ),
    "rehearse": ("rehearse_command", "run an experiment's pinned document on the local Iris"),
    "pin": (
        "pin_command",
        "write an experiment's version into its ledger; usually `bazel run //experiments/x:pin`",
    ),
    "sweep-plan": (
        "sweep_plan_command",
        "show the points of a sweep; usually `bazel run //experiments/x:plan`",
    ),
    "sweep-launch": (
        "sweep_launch_command",
        "launch the points of a sweep that are left; usually `bazel run //experiments/x:launch`",
    ),
    "sweep-rehearse": (
        "sweep_rehearse_command",
        "rehearse the points of a sweep one after another; usually `bazel run //experiments/x:rehearse`",
    ),
    "sweep-pin": (
        "sweep_pin_command",
        "write the versions of a sweep's points into their ledger; usually `bazel run //experiments/x:pin`",
    ),
    "runs": ("runs_command", "list the runs on record"),
    "status": ("status_command", "show where a run stands"),
    "watch": ("watch_command", "show a run until it ends, then verify it"),
    "logs": ("logs_command", "print what a run's coordinator and tasks wrote"),
    "verify": ("verify_command", "answer whether a run did what it was launched for, with evidence"),
    "cancel": ("cancel_command", "end a run's coordinator and children; needs --authorize"),
    "relaunch": (
        "relaunch_command",
        "start a new attempt of a run from its stored bundle; needs --authorize",
    ),
    "provenance": ("provenance_command", "print where a launch came from, as an in-toto statement"),
    "diff": ("diff_command", "say what differs between two launches, by field and by what it means"),
    "affected": ("affected_command", "tell which experiments a change of the sources touches"),
    "lint": ("lint_command", "judge launch documents, rendered here or written by hand"),
    "import-runtime": (
        "import_runtime_command",
        "write the manifest of another MarinSkyRL commit and say what it changes",
    ),
    "completion": ("completion_command", "print a script that makes a shell complete all of this"),
    "local": ("local_command", "start, look at or stop the local Iris"),
}
"""Name -> (module of this package, one line of help)."""

_USAGE = """launcher: launches reinforcement-learning experiments from pinned documents.

usage: launcher COMMAND [flags]

{commands}

Each command has its own --help with examples. Exit status: 0 done, 1 failed or not verified,
2 wrong usage, 3 refused (nothing started), 4 not known (call again), 130 interrupted,
141 output closed, 143 terminated.

examples:
  tools/bazel run //experiments/cat_count:launch
  tools/bazel run //tools/launcher -- runs --state=running
  tools/bazel run //tools/launcher -- watch cat_count
  tools/bazel run //tools/launcher -- verify cat_count
  tools/bazel run //tools/launcher -- cancel cat_count --authorize="ann: wrong data"
  tools/bazel run //tools/launcher -- local stop
"""


def usage() -> str:
    """Return the text of `launcher --help`."""
    width = max(len(name) for name in COMMANDS)
    return _USAGE.format(
        commands="\n".join(f"  {name:<{width}}  {help_}" for name, (_, help_) in COMMANDS.items())
    )


def _near(name: str) -> str:
    # Only for a word that is wrong: a start of the launcher should not load it.
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return exit_codes.OK if arguments else exit_codes.USAGE
    name, *rest = arguments
    if name not in COMMANDS:
        sys.stderr.write(f"launcher: no command '{name}'{_near(name)}. Commands: {', '.join(COMMANDS)}\n")
        return exit_codes.USAGE
    # Nothing that is imported becomes garbage; looking for it takes a tenth of the start.
    gc.disable()
    # Not for --help, which needs none of it and is read most often.
    from tools.launcher.cli.flag_parser import flag_parser

    module = importlib.import_module(f"tools.launcher.cli.{COMMANDS[name][0]}")
    gc.enable()
    parser = flag_parser(f"launcher {name}", module.DESCRIPTION)
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(rest))
    return status
