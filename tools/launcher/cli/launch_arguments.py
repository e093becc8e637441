"""The flags of `launch`, `rehearse` and `relaunch`, with an example each."""

from typing import Any

from tools.launcher.cli.launch_place import add_place_arguments, add_store_argument

AUTHORIZE_HELP = (
    'who answers for it and why, as "who: why"; recorded. For example --authorize="ann: node fault, agreed '
    'with ops"'
)


def add_submission_arguments(parser: Any) -> None:
    """Add what every command that submits has."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the plan, the gates and the exact requests; no cluster is asked, nothing started or written. "
        "Exit status 0 says that they could be shown, never that a launch would go through",
    )
    parser.add_argument("--detach", action="store_true", help="return after the submission")


def add_gate_arguments(parser: Any) -> None:
    """Add the flags with which somebody agrees to a submission, or answers for it."""
    gates = parser.add_argument_group("gates", "what must be true before anything is submitted")
    gates.add_argument(
        "--yes",
        action="store_true",
        help="submit to a cluster that is not local without asking; needed where there is no terminal",
    )
    gates.add_argument(
        "--allow-dirty",
        action="store_true",
        help="submit from a checkout that no commit has; recorded with your name",
    )
    gates.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="GATE=WHO: WHY",
        help="answer for a gate that is missing; recorded; repeatable. For example --override "
        'smoke="ann: the pool is down for the day"',
    )


def agreeing_arguments(flags: Any, *names: str) -> list[str]:
    """Return the arguments that say a command line again, and agree to its submission.

    Args:
        flags: of `add_submission_arguments` and `add_gate_arguments`.
        names: the command's other flags, those that have a value.
    """
    return [
        *(f"--{name}={value}" for name in names if (value := getattr(flags, name))),
        *(["--detach"] if flags.detach else []),
        *(["--allow-dirty"] if flags.allow_dirty else []),
        *(f"--override={answer}" for answer in flags.override),
        "--yes",
    ]


def add_launch_arguments(parser: Any) -> None:
    """Add the flags of `launch`."""
    _add_verb_arguments(parser)
    parser.set_defaults(verb="launch")
    add_place_arguments(parser)
    parser.add_argument(
        "--budget", metavar="FILE", help="the repository's GPU-hour ceilings; set by the experiment's target"
    )
    add_gate_arguments(parser)


def add_rehearse_arguments(parser: Any) -> None:
    """Add the flags of `rehearse`: on the local Iris nothing is at stake, so there is no gate to answer for."""
    _add_verb_arguments(parser)
    add_store_argument(parser)
    parser.set_defaults(
        verb="rehearse", controller=None, budget=None, yes=False, allow_dirty=False, override=[]
    )


def _add_verb_arguments(parser: Any) -> None:
    """Add what an experiment's launch and rehearsal have in common."""
    parser.add_argument("--stage", metavar="STAGE", help="terminal stage; must be one of the graph's")
    add_submission_arguments(parser)
    parser.add_argument(
        "--relaunch",
        action="store_true",
        help="start a new attempt of a document whose last attempt has ended; needs --authorize",
    )
    parser.add_argument("--authorize", metavar="WHO: WHY", help=f"of a relaunch: {AUTHORIZE_HELP}")
