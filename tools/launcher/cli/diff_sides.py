"""What `diff` is asked about: a file or a label, now or at a revision, a launch digest, a run on record."""

import enum
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.launcher.cli.affected_bazel import Workspace
from tools.launcher.cli.affected_build import build_outputs
from tools.launcher.cli.affected_checkout import checkout_of
from tools.launcher.cli.diff_found import Found, NoSuchSide, json_mapping
from tools.launcher.cli.diff_git import GitFileTooLarge, GitProblem, commit_of, file_at
from tools.launcher.cli.diff_golden import golden_at
from tools.launcher.cli.lint_inputs import STANDARD_INPUT, LintInputs, printable_path, read_document
from tools.launcher.cli.typed_paths import typed_path, workspace
from tools.launcher.compare.beside import beside_document
from tools.launcher.compare.side import COMMIT, Side
from tools.launcher.documents.canonical import CanonicalEncodingError, digest_of
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.render.digests import read_digest_file
from tools.launcher.submit.gates.budget import BudgetFacts, most_gpu_hours

_LABEL = re.compile(r"//(?P<package>[^:]*)(?::(?P<name>[^:/]+))?")
_MANY = ("...", "all", "*", "all-targets")
"""Last components of patterns, which name no one target."""
_DIGEST_MARK = "sha256:"
_DIGEST = re.compile(r"[0-9a-f]{6,64}")
_BUILT = (".launch.yaml", ".graph.json", ".plan.json", ".digest")
_DEADLINE = "iris.timeout"
_RETRIES = "iris.max_retries"
_GROUPS = ("launch", "graph", "plan", "digest")
_TABLE, _TABLE_GROUP = ".sweep.json", "sweep"
"""What the build of a sweep writes, and the output group with it."""
_NAMED_POINTS = 4


class Building(enum.Enum):
    """What of the sides that are named by label is built."""

    NOTHING = "nothing"
    WORKING_TREE = "labels of the working tree"
    REVISIONS = "labels of the working tree, and of revisions"


def find_side(name: str, flags: Any, environ: Mapping[str, str]) -> Found:
    """Return what `name` names; `diff --help` lists the forms.

    Args:
        name: as typed.
        flags: `building` and `store` are read.
        environ: the process environment.

    Raises:
        NoSuchSide, GitProblem, BazelProblem, NoSuchRun: it names nothing that can be had.
        DocumentError: the file cannot be read.
        StoreError: the store failed, or a bundle of it is damaged.
    """
    if name == STANDARD_INPUT:
        return Found(name, "standard input", read_document(name))
    if name.lstrip("@").startswith("//"):
        return _of_label(name, flags)
    if not name:
        raise NoSuchSide("a side is empty text. Name a file, a label, a revision's file, a digest or a run")
    if os.path.lexists(typed_path(name)):  # Unlike Path.exists also of a name that no file may have.
        return _of_file(name)
    if name.startswith(_DIGEST_MARK):
        digest = name.removeprefix(_DIGEST_MARK).lower()
        if not _DIGEST.fullmatch(digest):
            raise NoSuchSide(
                f"'{printable_path(name)}' is no launch digest. Give {_DIGEST_MARK} and 6 to 64 of its hex digits"
            )
        found: Found = _records().of_digest(digest, name, flags, environ)
        return found
    revision, colon, rest = name.partition(":")
    if colon:
        return _of_revision(name, revision, rest, flags, environ)
    if name.endswith((".yaml", ".yml", ".json")):
        raise NoSuchSide(f"{printable_path(name)}: there is no such file. Correct the path")
    on_record: Found = _records().of_run(name, name, flags, environ)
    return on_record


def side_of(found: Found) -> Side:
    """Return a side of the comparison.

    Raises:
        DocumentError: the document is none.
    """
    document = load_yaml_mapping(found.launch, source=printable_path(found.name))
    inputs = LintInputs(runtime_manifests=[], model_cards=[], cluster_cards=[], dataset_cards=[])
    chosen = inputs.choose(document, found.launch)
    subject, manifest = chosen.subject, chosen.runtime
    commit, origin = subject.get(COMMIT), found.origin
    if isinstance(commit, str) and manifest.item is not None and manifest.item.commit != commit:
        origin += f"; there is no manifest of its runtime, and what it leaves out is that of {manifest.file}"
    hours, needs = _gpu_hours(subject, found.graph)
    return Side(
        name=found.name,
        origin=origin,
        subject=subject,
        recipe=found.recipe,
        compatible=_compatible(found.graph),
        gpu_hours=hours,
        gpu_hours_needs=needs,
        beside=None if found.graph is None else beside_document(found.graph),
    )


def _records() -> ModuleType:
    """What reads stores, which loads their clients: only a launch on record needs that."""
    from tools.launcher.cli import diff_records

    return diff_records


def _of_label(name: str, flags: Any) -> Found:
    package, target = _package_and_name(name)
    if flags.building is not Building.NOTHING:
        return _built(Workspace(workspace()), package, target, name, "built now from the working tree")
    stem = workspace() / "bazel-bin" / package / target
    if not os.path.lexists(stem.with_name(stem.name + _BUILT[0])):
        _refuse_sweep(name, package, stem.with_name(stem.name + _TABLE))
        raise NoSuchSide(
            f"{name}: no built document at {stem}{_BUILT[0]}. Build it: tools/bazel build "
            f"//{package}:{target}, or leave --no-build out"
        )
    return _of_files(stem, name, "what the last build wrote, and the sources may have changed since")


def _of_revision(name: str, revision: str, rest: str, flags: Any, environ: Mapping[str, str]) -> Found:
    commit = commit_of(workspace(), revision) if revision else None
    if commit is None:
        raise NoSuchSide(
            f"'{printable_path(name)}' is no file, and '{printable_path(revision)}' is no revision of "
            f"{workspace()}. Name a file, a label "
            "such as //experiments/x, REV:FILE, sha256:DIGEST, or a run such as cat_count/2f1bbe6d"
        )
    if not rest.startswith("//"):
        try:
            return Found(name, f"file at {commit[:12]}", file_at(workspace(), commit, rest))
        except GitFileTooLarge:
            raise
        except GitProblem:
            raise NoSuchSide(
                f"{printable_path(name)}: {commit[:12]} has no file {printable_path(rest)}. Paths are relative to the root of the workspace"
            ) from None
    package, target = _package_and_name(rest)
    if flags.building is Building.REVISIONS:
        with checkout_of(workspace(), commit, environ) as checkout:
            return _built(checkout, package, target, name, f"built now at {commit[:12]}")
    golden = golden_at(workspace(), commit, package, target)
    if golden is None:
        raise NoSuchSide(
            f"{name}: at {commit[:12]} this target has no golden document. Give --build, which builds it in "
            "a checkout of its own"
        )
    return Found(name, f"golden at {commit[:12]}", golden.launch, recipe=golden.recipe)


def _of_file(name: str) -> Found:
    path = typed_path(name)
    root = workspace().resolve()
    if (path / "BUILD.bazel").is_file() and root in path.resolve().parents:
        label = printable_path(str(path.resolve().relative_to(root)))
        raise NoSuchSide(f"{printable_path(name)} is a folder. Name its experiment: //{label}")
    if name.endswith(_BUILT[0]):
        stem = path.with_name(path.name.removesuffix(_BUILT[0]))
        if all(stem.with_name(stem.name + ending).is_file() for ending in _BUILT):
            return _of_files(stem, name, "file, with the build's others beside it")
    return Found(printable_path(name), "file", read_document(name))


def _of_files(stem: Path, name: str, origin: str) -> Found:
    launch, graph, plan, digest = (stem.with_name(stem.name + ending) for ending in _BUILT)
    return _of_build(name, origin, {"launch": launch, "graph": graph, "plan": plan, "digest": digest})


def _built(where: Workspace, package: str, target: str, name: str, origin: str) -> Found:
    label = f"//{package}:{target}"
    events = build_outputs(where, [label], (*_GROUPS, _TABLE_GROUP))
    if not events.built(label):
        raise NoSuchSide(f"{name} does not build: {events.why_not(label)}")
    outputs = events.outputs(label)
    if _TABLE_GROUP in outputs:
        _refuse_sweep(name, package, outputs[_TABLE_GROUP])
    if missing := [group for group in _GROUPS if group not in outputs]:
        raise NoSuchSide(
            f"{name} is no experiment: its build writes no {', '.join(missing)}. Name an rl_experiment"
        )
    return _of_build(name, origin, outputs)


def _refuse_sweep(name: str, package: str, table: Path) -> None:
    """Refuse a label that has a table: it is a sweep, and only its points are launches."""
    if not table.is_file():
        return
    from tools.launcher.render.sweep import PointUnreadable, load_sweep  # Only a sweep needs its models.

    try:
        labels = [point.label for point in load_sweep(table.read_bytes()).points]
    except (OSError, PointUnreadable):
        labels = []
    more = len(labels) - _NAMED_POINTS
    named = ", ".join(labels[:_NAMED_POINTS]) + (f" and {more} more" if more > 0 else "")
    raise NoSuchSide(
        f"{name} is a sweep, which is no launch itself. Name one of its points"
        + (f": {named}" if named else f"; `tools/bazel query //{package}:all` lists them")
    )


def _of_build(name: str, origin: str, files: Mapping[str, Path]) -> Found:
    try:
        contents = {kind: file.read_bytes() for kind, file in files.items()}
        digests = read_digest_file(contents["digest"])
        graph, plan = (json_mapping(contents[kind], kind) for kind in ("graph", "plan"))
    except (OSError, ValueError, RecursionError) as error:
        raise NoSuchSide(
            f"{name}: the built files cannot be read ({error}). Build the experiment again"
        ) from None
    launch = contents["launch"]
    if _digest(launch, name) != digests.launch:
        # The files are of two builds: only the document is what was asked for.
        return Found(name, f"{origin}, alone: its digest file is of another build", launch)
    return Found(name, origin, launch, graph=graph, plan=plan, recipe=digests.recipe)


def _digest(launch: bytes, name: str) -> str | None:
    try:
        return digest_of(load_yaml_mapping(launch, source=name))
    except CanonicalEncodingError:
        return None


def _package_and_name(label: str) -> tuple[str, str]:
    match = _LABEL.fullmatch(label.lstrip("@"))
    package = match["package"].rstrip("/") if match is not None else ""
    name = (match["name"] if match is not None else None) or package.rpartition("/")[2]
    if not name or name in _MANY or _has_no_place(package):
        raise NoSuchSide(
            f"'{printable_path(label)}' is no label. Write one such as //experiments/x or //experiments/x:y"
        )
    return package, name


def _has_no_place(package: str) -> bool:
    """Whether no package has that name: its parts would lead elsewhere."""
    return any(part in ("", ".", "..", "...") for part in package.split("/")) and package != ""


def _compatible(graph: dict[str, Any] | None) -> tuple[str, ...]:
    """The fingerprints that a graph document calls compatible with its RL step; none of one it cannot read."""
    steps = [] if graph is None else graph.get("steps")
    return tuple(
        str(recipe)
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, dict) and step.get("kind") == "skyrl"
        for recipe in (step.get("compatible") or ())
    )


def _gpu_hours(subject: PreflightSubject, graph: dict[str, Any] | None) -> tuple[float | None, str]:
    """The most that a launch may take, and what it would take to know it."""
    try:
        own = subject.integer(_DEADLINE) if subject.has(_DEADLINE) else 0
        if own < 0:
            return None, f"{_DEADLINE} as seconds from 0, it is {own}"
        retries = subject.integer(_RETRIES) if own else 0
        if retries < 0:
            return None, f"{_RETRIES} as a number from 0, it is {retries}"
        hours = 0 if graph is None else graph.get("coordinator_timeout_hours", 0)
        if not is_count(hours):
            if retries or not own:
                return None, _coordinator_needed(own, graph)
            # Preflight refuses a coordinator that ends before a single attempt (EXE-19).
            hours = math.ceil(own / 3600)
        facts = BudgetFacts(
            cluster="",
            nodes=subject.launcher_count("iris.allocation.num_nodes"),
            gpus_per_node=subject.launcher_count("iris.allocation.gpus_per_node"),
            job_timeout_seconds=own,
            max_retries=retries,
            coordinator_timeout_hours=hours,
        )
    except UnreadableValue as missing:
        return None, str(missing)
    return float(most_gpu_hours(facts)), ""


def _coordinator_needed(own: int, graph: dict[str, Any] | None) -> str:
    if graph is not None:
        return "graph with the coordinator's deadline: it is of another launcher"
    why = "the job's own is of each attempt" if own else "the job has none of its own"
    return f"graph, which has the coordinator's deadline: {why}"
