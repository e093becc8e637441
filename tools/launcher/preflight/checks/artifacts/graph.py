"""Rules on the artifact graph and on the recipe it was built from. Documents carry neither."""

import re
from collections.abc import Iterator
from typing import Any

from tools.launcher.documents.canonical import CanonicalEncodingError
from tools.launcher.graph.artifact_graph import address_conflicts, mutable_dependencies, nested_outputs
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.versions import is_mutable, version_problem
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.addresses import document_address
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import listed, shown
from tools.launcher.rl.context_budget import DERIVED_PATHS
from tools.launcher.rl.recipe import LeafConflict
from tools.launcher.rl.topology import ROLE_PLAN_PATHS

_LIST_CHARACTERS = 60
_IDENTITY = re.compile(r"([^@\s]+)@([^:@\s]+):[0-9a-f]+")
"""`name@version:fingerprint` of an artifact."""


@check(
    "ART-03",
    "fixed versions do not depend on mutable ones",
    area="artifacts",
    rule="no calendar version depends, directly or through others, on dev or <label>-dev",
    prevents='A "fixed" result changes when its input is rebuilt.',
    inputs=("spec",),
    source="catalogue ART-03 (#3); Marin at build time",
)
def art_03(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.planned is None:
        yield from _mutable_inputs(subject)
    for step, dependency in mutable_dependencies(subject.origin().graph):
        yield Finding(
            path=step.address,
            message=f"{step.address} is fixed but depends on mutable {dependency.address}",
            repair=f"give {dependency.name} a calendar version, or make {step.name} dev",
        )


def _mutable_inputs(subject: PreflightSubject) -> Iterator[Finding]:
    """Findings on the identities `name@version:fingerprint` that a document itself states for its inputs."""
    name, version = document_address(subject)
    if version_problem(version) is not None or is_mutable(version):
        return
    stated = [("inputs.model.identity", subject.get("inputs.model.identity"))]
    stated += [(f"{place}.identity", record.get("identity")) for place, record in subject.data_sources()]
    for path, identity in stated:
        found = _IDENTITY.fullmatch(identity) if isinstance(identity, str) else None
        if found is not None and is_mutable(found[2]) and version_problem(found[2]) is None:
            yield Finding(
                path=path,
                message=f"{name}@{version} is fixed but depends on mutable {found[1]}@{found[2]}",
                repair=f"use a calendar version of {found[1]}, or make {name} dev",
            )


@check(
    "ART-04",
    "every override is used",
    area="artifacts",
    rule="each --override NAME=VERSION names an artifact of the graph, which has that version then",
    prevents="The author believes that an input was exchanged; it was not.",
    inputs=("spec",),
    source="catalogue ART-04 (#4); Marin at build time",
)
def art_04(subject: PreflightSubject) -> Iterator[Finding]:
    origin = subject.origin()
    names = sorted({step.name for step in origin.graph.steps})
    for name, version in sorted(origin.overrides.items()):
        versions = [step.version for step in origin.graph.steps if step.name == name]
        if not versions:
            yield Finding(
                path=f"--override {name}={version}",
                message=f"--override {name}={version} matches no artifact of this graph. Known: {listed(names)}",
                repair="name one of the known artifacts, or remove the override",
            )
        elif version not in versions:
            yield Finding(
                path=f"--override {name}={version}",
                message=f"--override {name}={version} is not used: the graph has {name}@{versions[0]}",
                repair=f"let the experiment take the version of {name} from its inputs, or remove the override",
            )


@check(
    "ART-05",
    "a pinned fingerprint is the computed one",
    area="artifacts",
    rule="expected_fingerprint, if set, equals the fingerprint of the definition",
    prevents="A pinned experiment is silently a different one.",
    inputs=("spec",),
    source="catalogue ART-05 (#5); Marin at build time",
)
def art_05(subject: PreflightSubject) -> Iterator[Finding]:
    for step in subject.origin().graph.steps:
        pinned = step.expected_fingerprint
        if pinned is None:
            continue
        try:
            computed = step_fingerprint(step)
        except CanonicalEncodingError as error:
            raise UnreadableValue(f"a definition of {step.address} with identity: {error}") from None
        if not pinned or not computed.startswith(pinned):
            yield Finding(
                path=step.address,
                message=f"{step.address}: fingerprint is {computed[: max(8, len(pinned))]}, pinned {shown(pinned)}",
                repair="restore the pinned definition, or publish a new version",
            )


@check(
    "ART-19",
    "outputs do not overlap",
    area="artifacts",
    rule="no artifact appears with two versions or definitions; no output path lies inside another",
    prevents="One run overwrites files of the other.",
    inputs=("spec",),
    source="catalogue ART-19 (new); nobody checks it",
)
def art_19(subject: PreflightSubject) -> Iterator[Finding]:
    origin = subject.origin()
    for first, second in address_conflicts(origin.graph):
        what = "with two definitions" if first.version == second.version else f"as {second.address} too"
        yield Finding(
            path=first.address,
            message=f"{first.address} is in the graph {what}",
            repair=f"use one step for {first.name}, or rename one",
        )
    for outer, inner, outer_path, inner_path in nested_outputs(origin.graph, origin.prefix):
        yield Finding(
            path=inner.address,
            message=f"{outer.address} and {inner.address} write to nested paths {outer_path}, {inner_path}",
            repair="rename one",
        )


@check(
    "ART-21",
    "recipe parts agree",
    area="artifacts",
    rule="two parts of a recipe that set one path set it to the same value of the same type",
    prevents="Which of two values a run gets depends on the order in which its parts are read.",
    inputs=("spec",),
    source="Slipway's own rule: recipe parts have no precedence",
)
def art_21(subject: PreflightSubject) -> Iterator[Finding]:
    for conflict in subject.origin().recipe.conflicts:
        if _is_owned(subject, conflict.path):
            continue  # Neither part may set it: GEO-18, CTX-03 and OBJ-13 name both.
        yield Finding(
            path=f"skyrl.{conflict.path}",
            message=(
                f"recipe part '{conflict.first_part}' sets {conflict.path} to {_written(conflict.first_value)}, "
                f"part '{conflict.second_part}' to {_written(conflict.second_value)}"
            ),
            repair=_agreement(conflict),
        )


def _is_owned(subject: PreflightSubject, path: str) -> bool:
    owned = {*(planned for _, planned in ROLE_PLAN_PATHS), *DERIVED_PATHS}
    owned |= set(subject.runtime.launcher_owned) if subject.runtime is not None else set()
    return path in owned or path.partition(".")[0] == "context_budget"


def _written(value: Any) -> str:
    if not isinstance(value, list):
        return shown(value)
    text = ", ".join(shown(item) for item in value)
    return f"[{text}]" if len(text) <= _LIST_CHARACTERS else f"a list of {len(value)} values"


def _agreement(conflict: LeafConflict) -> str:
    # A section may come from several parts, so that removing it from one is not enough.
    if isinstance(conflict.first_value, dict):
        return f"remove {conflict.path} from recipe part '{conflict.second_part}'"
    if isinstance(conflict.second_value, dict):
        return f"remove {conflict.path} from recipe part '{conflict.first_part}'"
    return f"remove {conflict.path} from one of the two parts"


CHECKS = (art_03, art_04, art_05, art_19, art_21)
