"""The golden document of an experiment as it was at a revision, found without building anything."""

import ast
from pathlib import Path
from typing import NamedTuple

from tools.launcher.cli.diff_git import GitProblem, file_at
from tools.launcher.compare.side import COMMIT
from tools.launcher.documents.canonical import CanonicalEncodingError
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.ledger import LEDGER_FILE, load_ledger
from tools.launcher.preflight.checks.artifacts.addresses import document_address
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue

_MACRO = "rl_experiment"
_BUILD_FILES = ("BUILD.bazel", "BUILD")


class Golden(NamedTuple):
    """A golden document, and the fingerprint that the ledger has for it."""

    launch: bytes
    recipe: str | None


def golden_at(workspace: Path, commit: str, package: str, name: str) -> Golden | None:
    """Return the golden of a target, None if its BUILD file names none in plain words.

    Args:
        workspace: root of the workspace.
        commit: where to look.
        package: of the target.
        name: of the target.
    """
    attributes = _attributes(_text(workspace, commit, [f"{package}/{file}" for file in _BUILD_FILES]), name)
    if "golden" not in attributes:
        return None
    launch = _text(workspace, commit, [f"{package}/{attributes['golden']}"])
    if launch is None:
        return None
    ledger = _text(workspace, commit, [f"{package}/{attributes.get('versions', LEDGER_FILE)}"])
    return Golden(launch, None if ledger is None else _pinned_recipe(launch, ledger))


def _text(workspace: Path, commit: str, paths: list[str]) -> bytes | None:
    for path in paths:
        try:
            return file_at(workspace, commit, path)
        except GitProblem:
            continue
    return None


def _attributes(build_file: bytes | None, name: str) -> dict[str, str]:
    """The attributes of a target that are plain text: Starlark without its statements reads as Python."""
    try:
        tree = ast.parse(build_file or b"")
    except (SyntaxError, ValueError):
        return {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _MACRO:
            values = {
                keyword.arg: keyword.value.value
                for keyword in node.keywords
                if keyword.arg
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, str)
            }
            if values.get("name") == name:
                return values
    return {}


def _pinned_recipe(launch: bytes, ledger: bytes) -> str | None:
    """The fingerprint of a document's version, if the ledger pinned just what the document says."""
    try:
        document = load_yaml_mapping(launch, source="golden")
        subject = PreflightSubject(document=document)
        pin = load_ledger(ledger, source=LEDGER_FILE).pinned(*document_address(subject))
        same = (
            pin is not None
            and pin.document == document_recipe(document)
            and pin.runtime == subject.get(COMMIT)
        )
    except (DocumentError, CanonicalEncodingError, UnreadableValue):
        return None
    return pin.recipe if pin is not None and same else None
