"""`pin`: writes what a build is into the version ledger beside its experiment."""

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.cli import exit_codes
from tools.launcher.cli.runfiles_paths import WrongFile, add_target_files, read_located
from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.files import write_atomically
from tools.launcher.documents.printable import printable
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.ledger import (
    PinnedVersion,
    RunIdentity,
    VersionLedger,
    dump_ledger,
    foreign_checkpoints,
    load_ledger,
    recipe_changed,
    repinned,
)
from tools.launcher.graph.versions import is_mutable
from tools.launcher.render.digests import LaunchDigests, read_digest_file

DESCRIPTION = """Pins the version of an experiment: writes its digests into versions.lock.yaml beside it.

From then on a build refuses another recipe under this version (ART-17), and another runtime (ART-06) unless the
entry says why it may go on from the checkpoints. Commit the file. It changes nothing else, and writes nothing if
the version is pinned already.

Exit status: 0 pinned, or already so; 2 wrong usage; 3 refused: the version has another recipe or runtime, or is
not fixed.

examples:
  tools/bazel run //experiments/cat_count:pin
  tools/bazel run //experiments/cat_count:pin -- --dry-run"""

WORKSPACE = "BUILD_WORKSPACE_DIRECTORY"
"""Where `bazel run` says the source tree is."""

_SHOWN_DIGITS = 12


class _Refused(Exception):
    """The ledger has something else under this version. `str()` names both and the fix."""


class _Build(BaseModel):
    """What is pinned."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    version: str
    target: str
    identity: RunIdentity


def add_arguments(parser: Any) -> None:
    """Add the flags of `pin`."""
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")
    add_target_files(parser, ("launch", "digest", "graph")).add_argument(
        "--ledger", required=True, metavar="FILE", help="ledger to write, from the root of the source tree"
    )


class Pinned(NamedTuple):
    """What became of one build.

    Attributes:
        status: exit status.
        changes: the ledger has something else now, or would have.
    """

    status: int
    changes: bool


def run(flags: Any) -> int:
    """Pin one build; see DESCRIPTION."""
    pinned = pin(flags)
    if pinned.changes:
        dry, done = (
            f"dry run: {flags.ledger} is not written",
            f"written: {flags.ledger}. Review and commit it",
        )
        sys.stdout.write(f"{dry if flags.dry_run else done}\n")
    return pinned.status


def pin(flags: Any) -> Pinned:
    """Pin one build and show what changes, but not that it is written."""
    try:
        return Pinned(exit_codes.OK, changes=_pin(flags))
    except (WrongFile, DocumentError) as error:
        sys.stderr.write(f"error: {error}\n")
        return Pinned(exit_codes.USAGE, changes=False)
    except OSError as error:
        # The name in the error may be that of the temporary file beside it.
        sys.stderr.write(
            f"error: {flags.ledger}: {error.strerror or error}. Make it a file that you can write, in a folder "
            "that you can write, then pin again\n"
        )
        return Pinned(exit_codes.USAGE, changes=False)
    except _Refused as refused:
        sys.stderr.write(f"refused: {refused}\n")
        return Pinned(exit_codes.REFUSED, changes=False)


def _pin(flags: Any) -> bool:
    """Pin one build and return whether that changes the ledger."""
    workspace = os.environ.get(WORKSPACE)
    if not workspace:
        raise WrongFile(
            f"{WORKSPACE} is not set: only `bazel run` knows the source tree, and the ledger is written there. "
            "Run it with tools/bazel run //experiments/NAME:pin"
        )
    build = _build(flags)
    file = Path(workspace, flags.ledger)
    if flags.dry_run:
        return _pin_into(file, build, flags)
    with _alone_in(file.parent):
        return _pin_into(file, build, flags)


def _pin_into(file: Path, build: _Build, flags: Any) -> bool:
    text = file.read_bytes() if file.exists() else b""
    ledger = load_ledger(text, source=flags.ledger) if text.strip() else VersionLedger()
    before = ledger.pinned(build.name, build.version)
    _require_allowed(build, before)
    after = repinned(before, build.identity)
    if after == before:
        sys.stdout.write(f"{build.name}@{build.version} is pinned already: {flags.ledger}\n")
        return False
    header, lost = _header(text.decode(), build.target)
    sys.stdout.write(_table(build, before, after))
    if lost:
        sys.stdout.write(f"note: comments below the first lines are not kept ({lost} in {flags.ledger})\n")
    if not flags.dry_run:
        write_atomically(file, dump_ledger(ledger.with_pin(build.name, build.version, after), header=header))
    return True


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other pins out of a package: the ledger is shared, and one that reads while another writes would take
    the other's entry away."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems lock no folders; there it is as before.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_allowed(build: _Build, pin: PinnedVersion | None) -> None:
    address, new = f"{build.name}@{build.version}", build.identity
    if is_mutable(build.version):
        raise _Refused(
            f"{address} is not a fixed version, and what may change is never pinned. Give it a date"
        )
    if pin is None:
        return
    if recipe_changed(pin, recipe=new.recipe, apart_from_runtime=new.apart_from_runtime, runtime=new.runtime):
        raise _Refused(
            f"{address} is pinned as {pin.recipe[:_SHOWN_DIGITS]}; this build is {new.recipe[:_SHOWN_DIGITS]}. "
            "A fixed version keeps its recipe. Publish a new version, or take the change back"
        )
    if foreign_checkpoints(pin, runtime=new.runtime, starts_fresh=new.starts_fresh):
        raise _Refused(
            f"{address} is pinned under runtime {pin.runtime[:_SHOWN_DIGITS]}; this build uses "
            f"{new.runtime[:_SHOWN_DIGITS]}. Publish a new version, or write `checkpoints: compatible` and "
            "`because: …` into its entry"
        )


def _build(flags: Any) -> _Build:
    """Read the outputs of the build. Raises WrongFile for what no build of this launcher made."""
    launch = load_yaml_mapping(read_located(flags.launch), source=flags.launch)
    digests = _digests(flags.digest)
    if digest_of(launch) != digests.launch:
        raise WrongFile(f"{flags.launch} and {flags.digest} are of two builds. Build the experiment again")
    try:
        graph = json.loads(read_located(flags.graph))
        (step,) = (step for step in graph["steps"] if step["kind"] == "skyrl")
        build = _Build(
            name=step["name"],
            version=step["version"],
            target=graph["experiment"],
            identity=RunIdentity(
                recipe=step["fingerprint"],
                apart_from_runtime=graph["apart_from_runtime"],
                document=document_recipe(launch),
                runtime=step["config"]["runtime_commit"],
                launch=digests.launch,
                # Whatever the runtime's default is: an author who starts afresh says so.
                starts_fresh=_says_fresh(launch),
            ),
        )
        repinned(None, build.identity)  # Refuses a commit that is none.
        return build
    except (ValueError, KeyError, TypeError) as error:
        what = " ".join(str(error).split())[:120] if isinstance(error, ValidationError) else repr(error)
        raise WrongFile(
            f"{flags.graph} is not of this launcher's making ({what}). Build the experiment again"
        ) from None


def _says_fresh(launch: dict[str, Any]) -> bool:
    trainer = launch["skyrl"].get("trainer")
    return isinstance(trainer, dict) and trainer.get("resume_mode") == "none"


def _digests(path: str) -> LaunchDigests:
    try:
        return read_digest_file(read_located(path))
    except ValueError as error:
        raise WrongFile(f"{path}: {error}. Build the experiment again") from None


def _header(text: str, target: str) -> tuple[str, int]:
    """Return the comment a ledger begins with, and how many comment lines stand elsewhere in it."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    lost = sum(line.lstrip().startswith("#") for line in lines[first:])
    return "".join(lines[:first]) or _written_by(target), lost


def _written_by(target: str) -> str:
    package, _, name = target.partition(":")
    verb = "pin" if PurePosixPath(package).name == name else f"{name}.pin"
    return (
        f"# Written by `tools/bazel run {package}:{verb}`. By hand: only `checkpoints` and `because`.\n"
        "# docs/versions.md says what the fields mean.\n"
    )


def _table(build: _Build, before: PinnedVersion | None, after: PinnedVersion) -> str:
    """What changes, one field a line."""
    lines = [f"{build.name}@{build.version}"]
    for name in ("recipe", "apart_from_runtime", "document", "runtime", "launch"):
        old, new = getattr(before, name, None), getattr(after, name)
        label = name.replace("_", " ")
        if old == new:
            lines.append(f"  {label:<18}  {new[:_SHOWN_DIGITS]}  unchanged")
        else:
            lines.append(
                f"  {label:<18}  {'new' if old is None else old[:_SHOWN_DIGITS]} -> {new[:_SHOWN_DIGITS]}"
            )
    if before is not None and before.recipe != after.recipe:
        lines.append(f"  {'earlier':<18}  + {before.recipe[:_SHOWN_DIGITS]}: {after.earlier[-1].because}")
    return "".join(f"{printable(line)}\n" for line in lines)
