"""`import-runtime`: the manifest of another MarinSkyRL commit, and what it changes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.cli.shipped_manifests import FOLDER, age, file_name, load_shipped, shipped_files
from tools.launcher.cli.typed_paths import typed_path, workspace
from tools.launcher.documents.files import write_atomically, write_once
from tools.launcher.documents.printable import printable
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.runtime_import.changes import Changes, compare, report, touches, without_rendered_defaults
from tools.launcher.runtime_import.checkout import Checkout, ImportProblem
from tools.launcher.runtime_import.manifest import ImportedManifest, import_manifest

DESCRIPTION = """Writes the runtime manifest of a MarinSkyRL checkout and prints what it changes.

The base configuration, its groups and the registries are read as data: YAML, and the syntax tree of Python
files. Nothing of the checkout is imported or run, git neither: the commit that .git names is read from its
files and must be the given one; local changes to files are not noticed. What a checkout does not say plainly
is taken over from the pinned manifest, and marked in the file and in the output.

Then come the differences to the pinned manifest, and the experiments that they touch: those that set a key
which is gone or has another type, name a registry's entry that is gone, or rely on a default that moved. The
experiments are the launch documents of --experiments: files, or folders in which every file called launch.yaml
or NAME.launch.yaml counts. Without it these are the golden documents, experiments/*/golden/launch.yaml.

Without --out the manifest is written to third_party/marinskyrl/<first 8 digits>.yaml of the workspace, where lint
finds it. To build experiments with it, add a runtime_manifest target for it to the BUILD.bazel there.

Exit status: 0 read and written (with --dry_run: only read), 2 a checkout, file or flag is wrong and nothing was
written.

examples:
  tools/bazel run //tools/launcher -- import-runtime --checkout=../MarinSkyRL --commit=$(git -C ../MarinSkyRL rev-parse HEAD)
  tools/bazel run //tools/launcher -- import-runtime --checkout=../MarinSkyRL --commit=<40 digits> --dry_run
  tools/bazel run //tools/launcher -- import-runtime ... --out=new.yaml --overwrite --experiments=mine/launch.yaml"""

_GOLDEN = "experiments/*/golden/launch.yaml"
_DOCUMENTS = ("**/launch.yaml", "**/*.launch.yaml")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_DOCUMENTS = 1000


def add_arguments(parser: Any) -> None:
    """Add the flags of `import-runtime`."""
    parser.add_argument("--checkout", required=True, metavar="DIR", help="folder of the MarinSkyRL checkout")
    parser.add_argument("--commit", required=True, metavar="SHA", help="its commit, 40 hexadecimal digits")
    parser.add_argument(
        "--out", metavar="FILE", help="where to write the manifest; the place where the project keeps its own"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file that is there")
    parser.add_argument("--dry_run", action="store_true", help="print what changes, and write nothing")
    parser.add_argument(
        "--pinned",
        metavar="FILE",
        help="manifest to compare with and to take facts over from; the newest of the project, but for this commit",
    )
    parser.add_argument("--marin_core", metavar="VERSION", help="release of marin-core that pins the commit")
    parser.add_argument(
        "--experiments",
        action="append",
        metavar="PATH",
        help="launch document, or folder of them; repeatable; the golden documents",
    )


@reporting
def run(flags: Any) -> int:
    """Import a checkout; see DESCRIPTION."""
    if not _COMMIT.fullmatch(flags.commit):
        raise WrongFile(
            f"--commit={flags.commit}: not a full commit. Give the 40 hexadecimal digits of `git rev-parse HEAD`"
        )
    pinned_file = _pinned(flags.pinned, flags.commit)
    pinned_text = pinned_file.read_bytes()
    pinned = load_runtime_manifest(pinned_text, source=pinned_file.name)
    out = _out(flags)
    if out is not None and not out.parent.is_dir():
        raise WrongFile(f"{out}: there is no folder {out.parent}. Correct --out")
    if out is not None and out.exists() and not flags.overwrite:
        raise WrongFile(f"{out}: there is a file already. Name another one with --out, or add --overwrite")
    documents = list(_documents(flags.experiments))
    try:
        checkout = Checkout(typed_path(flags.checkout))
        verified = _verified(checkout, flags.commit)
        imported = import_manifest(checkout, flags.commit, pinned, pinned_text, marin_core=flags.marin_core)
    except ImportProblem as problem:
        raise WrongFile(str(problem)) from None
    changes = without_rendered_defaults(compare(pinned, imported.manifest), imported.manifest)

    lines = [f"commit: {flags.commit}, {verified}", f"compared with: {pinned_file.name}", *_origin(imported)]
    lines += report(changes) or [f"no differences to {pinned.name}"]
    lines += _touched(documents, changes) if changes.any else []
    lines.append(_write(out, imported.text, flags.overwrite))
    print("\n".join(printable(line) for line in lines))
    return exit_codes.OK


def _verified(checkout: Checkout, commit: str) -> str:
    head = checkout.head()
    if head is None:
        return "not verified: the checkout has no git metadata that says its commit"
    if head != commit:
        raise ImportProblem(
            f"{checkout.root}: git has {head} checked out, --commit says {commit}. Check that commit out, "
            f"or give --commit={head}"
        )
    return "as .git says"


def _origin(imported: ImportedManifest) -> Iterator[str]:
    files = sorted({place for places in imported.read.values() for place in places})
    yield f"read: {len(files)} files"
    yield from (f"  {file}" for file in files)
    for field, reason in sorted(imported.taken_over.items()):
        if reason:
            yield f"taken over, not read: {field} ({reason})"
    silent = sorted(field for field, reason in imported.taken_over.items() if not reason)
    yield f"taken over, not read: {', '.join(silent)}"
    yield from (f"to do: {note}" for note in imported.notes)


def _touched(documents: list[tuple[str, dict[str, Any]]], changes: Changes) -> Iterator[str]:
    found = [(name, touches(document, changes)) for name, document in documents]
    touched = [(name, reasons) for name, reasons in found if reasons]
    yield f"experiments touched: {len(touched)} of {len(documents)}"
    for name, reasons in touched:
        yield f"  {name}"
        yield from (f"    {reason}" for reason in reasons)


def _write(out: Path | None, text: bytes, overwrite: bool) -> str:
    if out is None:
        return "not written: --dry_run"
    if overwrite:
        write_atomically(out, text)
    elif not write_once(out, text):
        raise WrongFile(f"{out}: there is a file already. Name another one, or add --overwrite")
    return f"written: {out}"


def _out(flags: Any) -> Path | None:
    if flags.dry_run:
        return None
    return workspace() / FOLDER / file_name(flags.commit) if flags.out is None else typed_path(flags.out)


def _pinned(given: str | None, commit: str) -> Path:
    if given is not None:
        file = typed_path(given)
        if not file.is_file():
            raise WrongFile(f"{given}: there is no such file. Give a runtime manifest")
        return file
    others = [file for file in shipped_files() if file.name != file_name(commit)] or list(shipped_files())
    if not others:
        raise WrongFile("the project has no runtime manifest. Name one with --pinned")
    return max(others, key=lambda file: (age(load_shipped(file)), file.name))


def _documents(given: list[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, document) of the experiments; the name is the path as it was given or found."""
    root = workspace()
    if given is None:
        files = [(str(file.relative_to(root)), file) for file in sorted(root.glob(_GOLDEN))]
    else:
        files = [pair for path in given for pair in _named(path)]
    if len(files) > _MOST_DOCUMENTS:
        raise WrongFile(f"--experiments names {len(files)} launch documents, the limit is {_MOST_DOCUMENTS}")
    for name, file in files:
        document = load_yaml_mapping(file.read_bytes(), source=name)
        if not isinstance(document.get("skyrl"), dict):
            raise WrongFile(
                f"{name}: this is no launch document, it has no skyrl section. Name a launch.yaml"
            )
        yield name, document


def _named(path: str) -> list[tuple[str, Path]]:
    place = typed_path(path)
    if place.is_file():
        return [(path, place)]
    found = sorted({file for pattern in _DOCUMENTS for file in place.glob(pattern) if file.is_file()})
    if not found:
        raise WrongFile(
            f"--experiments={path}: there is no launch document. Name a launch.yaml, or its folder"
        )
    return [(f"{path.rstrip('/')}/{file.relative_to(place)}", file) for file in found]
