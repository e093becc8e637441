"""The digests of one state of the sources: a file, a revision, or the working tree."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tools.launcher.cli.affected_bazel import Workspace
from tools.launcher.cli.affected_build import build_manifest
from tools.launcher.cli.affected_checkout import cache_folder, checkout_of, user_options
from tools.launcher.cli.affected_tree import tree_of_files
from tools.launcher.cli.diff_git import GitProblem, commit_of, is_clean, tree_of
from tools.launcher.cli.lint_inputs import printable_path, read_document
from tools.launcher.compare.digest_manifest import DigestManifest, dump_manifest, load_manifest
from tools.launcher.documents.files import write_atomically
from tools.launcher.documents.strict_yaml import DocumentError

WORKING_TREE = "the working tree"
_SHORT = 12
_FORM = 2
"""Of what is kept: a manifest of an older launcher knows less."""


class Question(NamedTuple):
    """What is asked of each state.

    Attributes:
        workspace: the user's.
        targets: an expression of `bazel query`.
        flags: options for each build.
        environ: the process environment.
    """

    workspace: Path
    targets: str
    flags: tuple[str, ...]
    environ: Mapping[str, str]

    @property
    def lists(self) -> Path:
        """Where the lists of experiments are that builds were asked about."""
        return cache_folder(self.environ) / "lists"

    def cache_file(self, tree: str) -> Path:
        """Where the manifest of a tree is kept: digests follow from its files and what is asked alone."""
        asked = repr((_FORM, self.targets, self.flags)).encode() + user_options(self.workspace)
        name = f"{tree}-{hashlib.sha256(asked).hexdigest()[:_SHORT]}.json"
        return cache_folder(self.environ) / "digests" / name


class State(NamedTuple):
    """The digests of a state, and how the report calls it."""

    name: str
    manifest: DigestManifest


def state_of_file(path: str) -> State:
    """Read a manifest that a digest_manifest target built.

    Raises:
        DocumentError: it cannot be read.
    """
    source = printable_path(path)
    return State(source, load_manifest(read_document(path), source=source))


def state_of_revision(question: Question, revision: str) -> State:
    """Return the digests of a revision, from the cache or from a build beside the workspace.

    Raises:
        GitProblem: there is no such revision.
        BazelProblem: it cannot be built.
        OSError: the cache cannot be written.
    """
    commit = commit_of(question.workspace, revision)
    tree = tree_of(question.workspace, revision)
    if commit is not None and tree is None:
        raise GitProblem(
            f"{commit[:_SHORT]} has no folder that the workspace {question.workspace} is now. Name a later revision"
        )
    if commit is None or tree is None:
        raise GitProblem(
            f"'{revision}' is no revision of {question.workspace} and no file that ends in .json. Name a "
            "commit, branch or tag, such as origin/main; `git fetch` brings those of others"
        )
    name = revision if commit.startswith(revision) else f"{revision} ({commit[:_SHORT]})"
    file = question.cache_file(tree)
    kept = _kept(file)
    if kept is not None:
        return State(name, kept)
    _say(f"building the digests of {name}, which are kept for the next call")
    with checkout_of(question.workspace, commit, question.environ) as checkout:
        manifest = build_manifest(
            checkout._replace(flags=(*checkout.flags, *question.flags)), question.targets, question.lists
        )
    # The user's options may have been edited while it was built.
    if question.cache_file(tree) == file:
        _keep(file, manifest)
    return State(name, manifest)


def state_of_working_tree(question: Question) -> State:
    """Return the digests of the files as they are, built in the user's own workspace.

    They are kept for the revision that a commit of these files would be, unless git does not look at all of them.

    Raises:
        as `state_of_revision`.
    """
    file = _file_of_working_tree(question)
    # An edited tree is built anew each time: what git does not see may be edited along with the rest.
    if file is not None and is_clean(question.workspace):
        kept = _kept(file)
        if kept is not None:
            return State(WORKING_TREE, kept)
    manifest = build_manifest(
        Workspace(question.workspace, flags=question.flags), question.targets, question.lists
    )
    # It, or the user's options, may have been edited while it was built.
    if file is not None and _file_of_working_tree(question) == file:
        _keep(file, manifest)
    return State(WORKING_TREE, manifest)


def _file_of_working_tree(question: Question) -> Path | None:
    """Where the manifest of the files as they are is kept, with the user's options as they are; None: nowhere."""
    tree = tree_of_files(question.workspace)
    return None if tree is None else question.cache_file(tree)


def _kept(file: Path) -> DigestManifest | None:
    try:
        return load_manifest(file.read_bytes(), source=str(file))
    except (FileNotFoundError, DocumentError):  # none, or of another launcher: it is built again
        return None


def _keep(file: Path, manifest: DigestManifest) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, dump_manifest(manifest))


def _say(text: str) -> None:
    sys.stderr.write(f"affected: {text}\n")
