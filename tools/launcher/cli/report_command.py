"""`:report`: print where the page of a plan is, and open it where somebody can look at it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.launcher.cli import exit_codes
from tools.launcher.cli.flag_parser import flag_parser
from tools.launcher.cli.runfiles_paths import WrongFile, add_target_files, located
from tools.launcher.cli.typed_paths import typed_path, workspace

_DESCRIPTION = """Prints where the report of a plan is. On a terminal, with a browser, it opens there.

examples:
  tools/bazel run //experiments/cat_count:report
  tools/bazel run //experiments/cat_count:report -- --output=cat_count.html
"""

_DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def run(arguments: Sequence[str]) -> int:
    """Print the page's path and open it, or copy it. Returns the exit status."""
    parser = flag_parser("report", _DESCRIPTION)
    add_target_files(parser, ("report",))
    parser.add_argument("--no-open", action="store_true", help="print the path and nothing else")
    parser.add_argument("--output", metavar="PATH", help="copy the page to this file, and name that")
    flags = parser.parse_args(list(arguments))
    try:
        page = located(flags.report).resolve()
        page = _short(page) if flags.output is None else _copied(page, flags.output)
    except WrongFile as error:
        sys.stderr.write(f"error: {error}\n")
        return exit_codes.USAGE
    sys.stdout.write(f"{page}\n")
    sys.stdout.flush()
    if not flags.no_open and sys.stdout.isatty() and _has_display(os.environ):
        import webbrowser

        webbrowser.open(page.as_uri())
    return exit_codes.OK


def _short(page: Path) -> Path:
    """The same file by the link of the workspace that leads to a build's outputs, where it does."""
    link = workspace() / "bazel-bin"
    outputs = link.resolve()
    return link.absolute() / page.relative_to(outputs) if page.is_relative_to(outputs) else page


def _copied(page: Path, output: str) -> Path:
    target = typed_path(output).absolute()
    try:
        target.write_bytes(page.read_bytes())
    except OSError as error:
        raise WrongFile(f"--output={output}: {error.strerror}. Name a file in a folder that exists") from None
    return target


def _has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser would show the page: a text browser on this very terminal is not wanted."""
    return sys.platform == "darwin" or any(environment.get(name) for name in _DISPLAYS)
