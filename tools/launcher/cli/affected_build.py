"""The digests of all experiments of a checkout, by one query and one build."""

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.launcher.cli.affected_bazel import (
    ANY_VISIBILITY,
    BUILT,
    FAILED,
    PARTLY,
    BazelProblem,
    Workspace,
    first_error,
)
from tools.launcher.cli.affected_events import BuildEvents
from tools.launcher.cli.affected_outputs import digests_of_outputs
from tools.launcher.compare.digest_manifest import DigestManifest, ExperimentDigests, load_manifest
from tools.launcher.documents.files import write_atomically
from tools.launcher.documents.strict_yaml import DocumentError

KIND = "rl_preflight rule"

# The digest_manifest of those experiments that the file in this variable lists (tools/launcher/private/asked.bzl).
_TOGETHER = "//tools/launcher/asked:digests"
_TOGETHER_FOLDER = "tools/launcher/asked"
_LIST_VARIABLE = "SLIPWAY_ASKED_EXPERIMENTS"

# `package contains errors: experiments/x: what is wrong`, and further lines of a traceback.
_BROKEN = re.compile(r"^ERROR: package contains errors: ([^\s:]*): (.+(?:\n(?:\s|Error).*)*)", re.MULTILINE)


def build_manifest(workspace: Workspace, targets: str, lists: Path) -> DigestManifest:
    """Build the digests of every experiment among `targets`.

    Args:
        workspace: where.
        targets: an expression of `bazel query`, such as `//experiments/...`.
        lists: a folder that stays, for lists of experiments.

    Returns:
        each experiment that builds; each other with its first sentence; each package that cannot be read as
        refused under its own label, since nobody knows what is in it.

    Raises:
        BazelProblem: Bazel ended otherwise than built or refused.
        OSError: the list cannot be written.
    """
    labels, refused = _experiments(workspace, targets)
    manifest = None
    if labels and (workspace.folder / _TOGETHER_FOLDER).is_dir():
        manifest = _built_together(workspace, targets, labels, lists)
        if manifest is None:
            sys.stderr.write("affected: they cannot be planned together, and are built one by one\n")
    if manifest is None:
        manifest = _built_one_by_one(workspace, labels)
    return manifest.model_copy(update={"refused": manifest.refused | refused})


def _experiments(workspace: Workspace, targets: str) -> tuple[list[str], dict[str, str]]:
    """The labels of all experiments, and package -> why it cannot be read."""
    asked = workspace.ask("query", "--keep_going", f'kind("{KIND}", {targets})')
    if asked.status not in (BUILT, PARTLY):
        raise BazelProblem(
            f"bazel query in {workspace.folder} ended with {asked.status}: {first_error(asked.stderr)}. "
            "Correct the sources, or --targets"
        )
    refused = {f"//{package}": _last_line(said) for package, said in _BROKEN.findall(asked.stderr)}
    if asked.status == PARTLY and not refused:
        raise BazelProblem(
            f"bazel query in {workspace.folder} read only a part: {first_error(asked.stderr)}. "
            "Correct the sources"
        )
    return [_canonical(line) for line in asked.stdout.splitlines()], refused


def _built_together(
    workspace: Workspace, targets: str, labels: list[str], lists: Path
) -> DigestManifest | None:
    """The digest manifest of these experiments; None if one cannot be analysed, or has an input that does not build."""
    listed = "".join(f"{label}\n" for label in sorted(labels)).encode()
    file = lists / f"{hashlib.sha256(listed).hexdigest()}.txt"
    if not file.exists():
        lists.mkdir(parents=True, exist_ok=True)
        write_atomically(file, listed)
    asking = workspace._replace(flags=(*workspace.flags, f"--repo_env={_LIST_VARIABLE}={file}"))
    outputs = build_outputs(asking, [_TOGETHER], ("default",)).outputs(_TOGETHER)
    if not outputs and ANY_VISIBILITY not in workspace.flags and _some_are_private(workspace, targets):
        # Not at once: Bazel analyses everything anew for it.
        asking = asking._replace(flags=(*asking.flags, ANY_VISIBILITY))
        outputs = build_outputs(asking, [_TOGETHER], ("default",)).outputs(_TOGETHER)
    if not outputs:
        return None
    try:
        manifest = load_manifest(outputs["default"].read_bytes(), source=_TOGETHER)
    except OSError:
        return None  # Somebody else builds it at this moment.
    except DocumentError:
        raise BazelProblem(
            f"{_TOGETHER} in {workspace.folder} is not of this launcher's making. Compare with a later revision"
        ) from None
    # Somebody else may have built it meanwhile, of other experiments.
    return manifest if manifest.experiments.keys() | manifest.refused.keys() == set(labels) else None


def _some_are_private(workspace: Workspace, targets: str) -> bool:
    """Whether there are experiments that the manifest may not use."""
    experiments = f'kind("{KIND}", {targets})'
    asked = workspace.ask(
        "query", "--keep_going", f"{experiments} except visible({_TOGETHER}, {experiments})"
    )
    return bool(asked.stdout.strip())


def _built_one_by_one(workspace: Workspace, labels: list[str]) -> DigestManifest:
    if not labels:
        return DigestManifest(schema=1, experiments={})
    events = build_outputs(workspace, labels, ("digest", "graph"))
    experiments: dict[str, ExperimentDigests] = {}
    refused: dict[str, str] = {}
    for label in labels:
        outputs = events.outputs(label)
        if outputs:
            experiments[label] = _read(outputs, label)
        else:
            refused[label] = events.why_not(label)
    return DigestManifest(schema=1, experiments=experiments, refused=refused)


def build_outputs(workspace: Workspace, labels: Iterable[str], groups: Iterable[str]) -> BuildEvents:
    """Build output groups of some targets, each as far as it goes, and return the events of that.

    Raises:
        BazelProblem: Bazel ended otherwise than built or refused.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-affected-") as folder:
        events, targets = Path(folder) / "events.json", Path(folder) / "targets"
        targets.write_text("\n".join(labels) + "\n", encoding="utf-8")
        done = workspace.build(
            "--keep_going",
            f"--output_groups={','.join(groups)}",
            f"--build_event_json_file={events}",
            f"--target_pattern_file={targets}",
        )
        try:
            with events.open(encoding="utf-8") as lines:
                read = BuildEvents(lines)
        except (OSError, ValueError, KeyError) as error:
            raise BazelProblem(
                _ended(workspace, done.status, f"its events cannot be read ({error})")
            ) from None
    if done.status not in (BUILT, FAILED) or not read.finished:
        raise BazelProblem(_ended(workspace, done.status, "that is neither built nor refused"))
    return read


def _ended(workspace: Workspace, status: int, why: str) -> str:
    return (
        f"bazel build in {workspace.folder} ended with {status}: {why}. Run `tools/bazel build "
        "//experiments/...` there and correct what it says"
    )


def _read(outputs: dict[str, Path], label: str) -> ExperimentDigests:
    try:
        return digests_of_outputs(outputs["digest"].read_bytes(), outputs["graph"].read_bytes())
    except (OSError, ValueError, KeyError) as error:
        raise BazelProblem(
            f"{label}: its outputs are not of this launcher's making ({type(error).__name__}: {error}). "
            "Compare with a later revision"
        ) from None


def _canonical(label: str) -> str:
    """The label as events write it: with the target, without a repository."""
    label = "//" + label.partition("//")[2]
    return label if ":" in label else f"{label}:{label.rpartition('/')[2]}"


def _last_line(said: str) -> str:
    return said.strip().splitlines()[-1].strip()
