"""Selections of tasks from a TaskTrove collection."""

from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.sources import relative_path_problem
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, delete, listed, set_to, shown
from tools.launcher.rl.artifacts import TaskTroveDataSource
from tools.launcher.rl.steps import SkyRLStepPayload

_LISTS = ("sources", "tags", "modes")
_FIELDS = (*_LISTS, "tag_match", "limit", "seed")
_TAG_MATCHES = ("all", "any")


def _tasktrove_sources(subject: PreflightSubject) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, record in subject.data_sources():
        if record.get("kind") == "tasktrove_parquet":
            yield place, record


@check(
    "ART-10",
    "TaskTrove selections are not empty and not ambiguous",
    area="artifacts",
    rule="one of sources, tags, modes is not empty; no blank or repeated entry; limit > 0 or null; "
    "tag_match in {all, any}; the manifest path stays below the artifact",
    prevents="An empty or double selection, or a path outside the artifact.",
    inputs=("spec",),
    source="catalogue ART-10 (#10); Marin at build time",
)
def art_10(subject: PreflightSubject) -> Iterator[Finding]:
    for place, record in _tasktrove_sources(subject):
        if "selection" in record:
            yield from _selection_problems(f"{place}.selection", record["selection"])
    for address, manifest_path in _manifest_paths(subject):
        problem = relative_path_problem(manifest_path)
        if problem is not None or not manifest_path:
            yield Finding(
                path=address,
                message=f"manifest_path {problem or 'is empty'}",
                repair="use a path below the artifact's root, such as manifest.json",
            )


def _selection_problems(place: str, selection: Any) -> Iterator[Finding]:
    if not isinstance(selection, dict):
        yield Finding(
            path=place,
            message=f"the TaskTrove selection is {shown(selection)}, not a mapping",
            repair=f"write a mapping with {listed(_FIELDS)}",
        )
        return
    for field in sorted(set(selection) - set(_FIELDS), key=str):
        yield Finding(
            path=below(place, field),
            message=f"a TaskTrove selection has no field {shown(field)}. Its fields: {listed(_FIELDS)}",
            repair=delete(below(place, field)),
        )
    for field in _LISTS:
        yield from _entry_problems(f"{place}.{field}", selection.get(field, []))
    if not any(selection.get(field) for field in _LISTS):
        yield Finding(
            path=place,
            message="the TaskTrove selection is empty",
            repair="name at least one source, tag or mode",
        )
    match = selection.get("tag_match", _TAG_MATCHES[0])
    if match not in _TAG_MATCHES:
        yield Finding(
            path=f"{place}.tag_match",
            message=f"tag_match {shown(match)} is unknown. Known: {listed(_TAG_MATCHES)}",
            repair=set_to(f"{place}.tag_match", *_TAG_MATCHES),
        )
    limit = selection.get("limit")
    if limit is not None and (type(limit) is not int or limit <= 0):
        yield Finding(
            path=f"{place}.limit",
            message=f"limit {shown(limit)} must be a positive integer, or null for all tasks",
            repair=set_to(f"{place}.limit", "null"),
        )
    seed = selection.get("seed", 0)
    if type(seed) is not int:
        yield Finding(
            path=f"{place}.seed",
            message=f"seed {shown(seed)} of the selection is not an integer",
            repair=set_to(f"{place}.seed", 0),
        )


def _entry_problems(place: str, entries: Any) -> Iterator[Finding]:
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        yield Finding(
            path=place,
            message=f"{place.rpartition('.')[2]} of the selection is {shown(entries)}, not a list of text",
            repair="write a list of text",
        )
        return
    if any(not entry.strip() for entry in entries):
        yield Finding(path=place, message="the selection has a blank entry", repair="remove the blank entry")
    for entry in sorted({entry for entry in entries if entries.count(entry) > 1}):
        yield Finding(
            path=place,
            message=f"the selection names {shown(entry)} {entries.count(entry)} times",
            repair=f"keep {shown(entry)} once",
        )


def _manifest_paths(subject: PreflightSubject) -> Iterator[tuple[str, str]]:
    """Yield (address, manifest_path) from the typed origin; the document does not carry the path."""
    if subject.planned is None:
        return
    for step in subject.planned.graph.steps:
        if isinstance(step.payload, SkyRLStepPayload):
            spec = step.payload.spec
            for source in (*spec.train_data, *spec.validation_data):
                if isinstance(source, TaskTroveDataSource):
                    yield source.step.address, source.manifest_path


@check(
    "ART-11",
    "the TaskTrove manifest names its verifier",
    area="artifacts",
    rule="verify_tool_ref of the manifest, verifier_ref of the source, is text that is not empty",
    prevents="The verifier cannot be identified, and the run stops in the coordinator.",
    inputs=("spec", "dataset"),
    source="catalogue ART-11 (#11); Marin, late",
)
def art_11(subject: PreflightSubject) -> Iterator[Finding]:
    for place, record in _tasktrove_sources(subject):
        reference = record.get("verifier_ref")
        if not isinstance(reference, str) or not reference.strip():
            card = subject.train_dataset.name if subject.train_dataset is not None else None
            of_card = f"dataset card {card}: " if card else ""
            yield Finding(
                path=f"{place}.verifier_ref",
                message=f"{of_card}the manifest has no verify_tool_ref (verifier_ref is {shown(reference)})",
                repair="rebuild the dataset or choose an older version",
            )


CHECKS = (art_10, art_11)
