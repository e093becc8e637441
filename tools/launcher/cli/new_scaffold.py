"""A new experiment: its files from a template, and the lists that name every experiment."""

import keyword
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.launcher.cli.new_templates import FILES, TEMPLATES
from tools.launcher.documents.files import write_atomically
from tools.launcher.graph.versions import is_mutable, version_problem

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST = 40
"""Characters. The name of a job has the experiment's name, eight digits and an ordinal, and 63 are all it may have."""

_TAKEN = ("launch", "pin", "plan", "rehearse", "report", "sources")
"""Targets that every experiment's package has already."""

_MARKS = ("MODULE.bazel", "tools/launcher/defs.bzl", "experiments")
"""What the root of a workspace with this launcher has."""


class ScaffoldProblem(Exception):
    """An experiment cannot be made. `str()` names the place, the rule and the fix."""

    def __init__(self, text: str, *, exists: bool = False) -> None:
        super().__init__(text)
        self.exists = exists
        """Whether something of that name is there already."""


@dataclass(frozen=True)
class Edit:
    """A file of the workspace with one line more."""

    file: str
    line: str
    text: str
    """The whole file after it."""


@dataclass(frozen=True)
class ByHand:
    """A line that could not be added."""

    file: str
    line: str


@dataclass(frozen=True)
class Scaffold:
    """What is to be written. Paths are from the root of the workspace."""

    root: Path
    package: str
    files: dict[str, str]
    """Path below the package -> text."""
    edits: tuple[Edit, ...]
    by_hand: tuple[ByHand, ...]

    @property
    def has_golden(self) -> bool:
        """Whether the rendered document is pinned under test."""
        return _GOLDEN in self.files


@dataclass(frozen=True)
class _List:
    """A list of experiments in a Starlark file: `opening` is the line before its first entry."""

    file: str
    opening: str
    entry: str


_GOLDEN = "golden/launch.yaml"
_PACKAGES = _List("tests/lint/packages.bzl", "PACKAGES = [", "{package}")
_DIGESTS = _List("experiments/BUILD.bazel", "experiments = [", "//{package}")
_GOLDENS = _List("tests/goldens/BUILD.bazel", "EXPERIMENTS = [", "//{package}")

LIST_FILES = (_PACKAGES.file, _DIGESTS.file, _GOLDENS.file)
"""Files that may get a line, from the root of the workspace."""


def plan_scaffold(root: Path, name: str, version: str, template: str, *, golden: bool) -> Scaffold:
    """Return what makes an experiment, without writing anything.

    Args:
        root: of the workspace.
        name: of the experiment.
        version: its first one.
        template: a name of TEMPLATES.
        golden: whether its document is pinned under test.

    Raises:
        ScaffoldProblem: the name or version is bad, the template has no golden, the folder exists, or this is no
            workspace.
    """
    _require_workspace(root)
    _require_name(name)
    problem = version_problem(version)
    if problem or is_mutable(version):
        raise ScaffoldProblem(
            f"--version={version}: {problem or 'is not fixed'}. Give a day, such as 2026.11.30, or leave it out"
        )
    if golden and not TEMPLATES[template].may_be_golden:
        raise ScaffoldProblem(
            f"--golden: the template {template} makes many documents, and its table is what is reviewed. Leave the flag out"
        )
    package = f"experiments/{name}"
    if os.path.lexists(root / package):
        raise ScaffoldProblem(
            f"{package} exists. Nothing is overwritten: choose another name, or remove it", exists=True
        )
    words = {
        "@NAME@": name,
        "@TITLE@": name.replace("_", " ").capitalize(),
        "@VERSION@": version,
        "@GOLDEN@": f'    golden = "{_GOLDEN}",\n' if golden else "",
    }
    files = {file: _filled(TEMPLATES[template].text(file), words) for file in FILES}
    if golden:
        files[_GOLDEN] = ""
    lists = (_PACKAGES, _DIGESTS, *([_GOLDENS] if golden else []))
    changes = [_with_entry(root, place, package) for place in lists]
    return Scaffold(
        root,
        package,
        files,
        edits=tuple(change for change in changes if isinstance(change, Edit)),
        by_hand=tuple(change for change in changes if isinstance(change, ByHand)),
    )


def write_scaffold(scaffold: Scaffold) -> None:
    """Write everything: the folder under a name of its own, then renamed; then the lists, each whole or not at all.

    Raises:
        ScaffoldProblem: somebody else made the folder meanwhile, or it is there and a list could not be written.
        OSError: as the operating system gives it. The folder is not there then.
    """
    final = scaffold.root / scaffold.package
    # Beside the folder that it becomes, because a rename stays in one file system.
    building = final.with_name(f".{final.name}.{secrets.token_hex(4)}")
    try:
        for name, text in scaffold.files.items():
            file = building / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        try:
            building.rename(final)
        except OSError as error:
            if not os.path.lexists(final):
                raise
            raise ScaffoldProblem(
                f"{scaffold.package} was made by somebody else just now. Choose another name", exists=True
            ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    for edit in scaffold.edits:
        try:
            write_atomically(scaffold.root / edit.file, edit.text.encode())
        except OSError as error:
            raise ScaffoldProblem(
                f"{scaffold.package} is made, and {edit.file} could not be written ({error.strerror}). Add to its list: "
                f"{edit.line}"
            ) from error


def _require_workspace(root: Path) -> None:
    for mark in _MARKS:
        if not (root / mark).exists():
            raise ScaffoldProblem(
                f"{root.absolute()} has no {mark}, so it is no workspace of this launcher. Call it inside of one: "
                "tools/bazel run //tools/launcher -- new NAME"
            )


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ScaffoldProblem(
            f"'{name}' is no name of an experiment. Use lower-case letters, digits and '_', a letter first, such as "
            f"'{_better(name)}'"
        )
    if len(name) > _LONGEST:
        raise ScaffoldProblem(
            f"'{name}' has {len(name)} characters, and {_LONGEST} fit into the name of a job. Choose a shorter one"
        )
    if name in _TAKEN or keyword.iskeyword(name):
        what = "a word of Python" if keyword.iskeyword(name) else "a target that every experiment has"
        raise ScaffoldProblem(f"'{name}' is {what}. Choose another name, such as 'my_{name}'")


def _better(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:_LONGEST]
    return plain if _NAME.fullmatch(plain) else f"my_{plain}".strip("_")


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _with_entry(root: Path, place: _List, package: str) -> Edit | ByHand:
    """The file with the entry at its sorted place; lists that are not as we know them are left to people."""
    entry = place.entry.format(package=package)
    file = root / place.file
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.is_file() else []
    start = next((i for i, line in enumerate(lines) if line.strip() == place.opening), None)
    if start is None:
        return ByHand(place.file, f'"{entry}",')
    indent = " " * (len(lines[start]) - len(lines[start].lstrip()) + 4)
    here = start + 1
    while (
        here < len(lines) and lines[here].strip().startswith('"') and lines[here].strip().strip('",') < entry
    ):
        here += 1
    line = f'{indent}"{entry}",\n'
    return Edit(place.file, line.strip(), "".join([*lines[:here], line, *lines[here:]]))
