"""`--record FILE.md`: what a command says of a run, in a file for an issue or a pull request."""

from pathlib import Path
from typing import Any

from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.cli.typed_paths import typed_path
from tools.launcher.documents.files import write_atomically

ENDING = ".md"


def add_record_argument(parser: Any) -> None:
    """Add `--record`."""
    parser.add_argument(
        "--record",
        metavar="FILE.md",
        help="also write it to this file as Markdown, for an issue or a pull request; a file that this flag wrote "
        "before is replaced, no other is",
    )


def record_file(path: str | None) -> Path | None:
    """Return the file that `--record` names, None without one. To be asked before the work.

    Raises:
        WrongFile: the launcher may not write there.
    """
    if path is None:
        return None
    from tools.launcher.observe.run_markdown import MARK

    target = typed_path(path)
    if target.suffix != ENDING:
        raise WrongFile(f"--record={path}: a Markdown file is written. Give it a name that ends in {ENDING}")
    if target.exists() and not target.is_file() and not target.is_dir():
        # Of a pipe that nobody writes to, even opening would wait.
        raise WrongFile(f"--record={path}: this is a pipe or a device. Name a file")
    try:
        with target.open("rb") as present:
            begins = present.read(len(MARK.encode()))
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise WrongFile(f"--record={path}: there is no folder {target.parent}. Make it first") from None
        return target
    except OSError as error:
        raise WrongFile(f"--record={path}: {error.strerror}. Name a file that can be written") from None
    if begins and begins != MARK.encode():
        raise WrongFile(
            f"--record={path}: the file is there and was not written by this flag. Name another one, or move it away"
        )
    return target


def write_record(target: Path, markdown: str) -> None:
    """Write the file and say so.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(target, markdown.encode())
    print(f"written: {target}")
