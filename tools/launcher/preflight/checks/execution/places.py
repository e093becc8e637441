"""The places that a run writes: whether they can be written, and whether they belong together."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import bare
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import listed, shown

CHECKPOINTS = "artifacts.checkpoint_root"
EXPORTS = "artifacts.export_root"
ATTEMPTS = "artifacts.attempts_root"
RESOLVED = "artifacts.resolved_config_uri"
TERMINAL = "artifacts.terminal_manifest_uri"
RENDEZVOUS = "ray.rendezvous_dir"
LOGS = "ray.log_dir"
TEMPORARY = (CHECKPOINTS, ATTEMPTS, RENDEZVOUS, LOGS)
DURABLE = (EXPORTS, RESOLVED, TERMINAL)
_OUTLIVING = (CHECKPOINTS, ATTEMPTS, *DURABLE)
"""What a later attempt, the launcher or a reader looks for."""
_OF_ONE_MACHINE = ("/tmp/", "/var/tmp/", "/dev/shm/")
_CLUSTER = "iris.cluster"

_OBJECT_STORES = ("s3://", "gs://", "gcs://")
_WRITABLE_SCHEMES = (*_OBJECT_STORES, "file://", "local://", "memory://")
_TTL = re.compile(r"ttl=([0-9]{1,6})d", re.ASCII)


class Place(NamedTuple):
    """A directory or file that the run writes."""

    path: str
    address: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def components(self) -> list[str]:
        """Parts of the address below its scheme, the bucket first."""
        return (
            self.address.partition("://")[2].split("/") if "://" in self.address else self.address.split("/")
        )

    @property
    def on_object_storage(self) -> bool:
        return self.address.startswith(_OBJECT_STORES)

    @property
    def on_a_node(self) -> bool:
        """Whether this is a folder that every machine has for itself, not a mount that nodes may share."""
        return self.address.removeprefix("file://").startswith(_OF_ONE_MACHINE)

    @property
    def lifetime(self) -> str | None:
        """The component which says how long objects live, as written."""
        return next((part for part in self.components if part.startswith("ttl=")), None)

    @property
    def days(self) -> int | None:
        """The lifetime in days, None where none can be read."""
        match = _TTL.fullmatch(self.lifetime or "")
        return int(match[1]) if match is not None else None


def places(subject: PreflightSubject, *paths: str) -> Iterator[Place]:
    """Yield the stated places.

    Raises:
        UnreadableValue: after the last, for the first that is no text.
    """
    unreadable: UnreadableValue | None = None
    for path in paths:
        value = subject.get(path)
        if isinstance(value, str) and value.strip():
            yield Place(path, value.strip())
        else:
            unreadable = unreadable or UnreadableValue(f"{path} as an address, it is {shown(value)}")
    if unreadable is not None:
        raise unreadable


@check(
    "EXE-26",
    "the plan writes below the cluster's prefix",
    area="execution",
    rule="export_root, resolved_config_uri and terminal_manifest_uri are below the cluster's MARIN_PREFIX",
    prevents="The planned output path differs from the one that the run uses.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-26 (new), contract typed-spec.md §2; nobody checks it",
)
def exe_26(subject: PreflightSubject) -> Iterator[Finding]:
    prefix = subject.cluster_fact("marin_prefix")
    if prefix is None:
        return
    outside = [
        place for place in places(subject, *DURABLE) if not place.address.startswith(prefix.rstrip("/") + "/")
    ]
    if outside:
        name = subject.cluster.name if subject.cluster is not None else ""
        yield Finding(
            path=outside[0].path,
            message=f"the plan writes {listed(place.name for place in outside)} to {shown(outside[0].address)}, MARIN_PREFIX of "
            f"{name} is {prefix}",
            repair=f"use an output path below {prefix}",
            severity="warning",
        )


@check(
    "EXE-31",
    "every place can be written from every node",
    area="execution",
    rule="an address is absolute: <scheme>://<bucket>/..., or a path that begins with '/'; no '..'; on a cluster behind a "
    "hub, what outlives a task is not on a disk of its node",
    prevents="Each node writes somewhere else, nothing can be written, or what was written is gone with the task.",
    inputs=("spec",),
    source="contract launch-document.md §4.6 and §4.7; nobody checks it",
)
def exe_31(subject: PreflightSubject) -> Iterator[Finding]:
    behind_a_hub = _is_behind_a_hub(subject)
    for place in places(subject, *TEMPORARY, *DURABLE):
        scheme, separator, rest = place.address.partition("://")
        if not separator and not place.address.startswith("/"):
            problem = "is a relative path, another place on every node"
        elif place.on_object_storage and (not rest or rest.startswith("/")):
            problem = "names no bucket"
        elif ".." in place.components:
            problem = "leaves its root with '..'"
        elif behind_a_hub and place.path in _OUTLIVING and place.on_a_node:
            problem = "is on a disk of one node, which is emptied when the task ends"
        elif separator and not place.address.startswith(_WRITABLE_SCHEMES):
            yield Finding(
                path=place.path,
                message=f"{place.name} {shown(place.address)} is on {bare(scheme)}, which is not known as a store that runs write to",
                repair="use an address that begins with s3:// or gs://",
                severity="warning",
            )
            continue
        else:
            continue
        yield Finding(
            path=place.path,
            message=f"{place.name} {shown(place.address)} {problem}",
            repair="use an address such as s3://<bucket>/<path>",
        )


def _is_behind_a_hub(subject: PreflightSubject) -> bool:
    """Whether a hub is known that passes jobs on to the document's cluster: it is no single machine."""
    federation = (subject.runtime.federation if subject.runtime is not None else None) or {}
    return any(subject.get(_CLUSTER) in peers for peers in federation.values())


@check(
    "EXE-32",
    "the places of a run belong together",
    area="execution",
    rule="exports, resolved document and terminal manifest below one output path <name>/<version>; checkpoints and attempts "
    "below one temporary root of the same name and version; no place twice",
    prevents="A run resumes from the checkpoints of another, overwrites its result, or destroys its own.",
    inputs=("spec",),
    source="contract typed-spec.md §2; nobody checks it",
    implied_by=("EXE-14", "EXE-31"),
)
def exe_32(subject: PreflightSubject) -> Iterator[Finding]:
    stated = {place.path: place for place in places(subject, *TEMPORARY, *DURABLE)}
    seen: dict[str, Place] = {}
    twice = set()
    for place in stated.values():
        first = seen.setdefault(place.address.rstrip("/"), place)
        if first is not place:
            twice |= {place.path, first.path}
            yield Finding(
                path=place.path,
                message=f"{first.name} and {place.name} are both {shown(place.address)}: one overwrites the other",
                repair="give each its own place",
            )
    for path, root in ((RENDEZVOUS, ATTEMPTS), (LOGS, ATTEMPTS)):
        inside, outer = stated[path], stated[root]
        if not inside.address.startswith(outer.address.rstrip("/") + "/"):
            yield _apart(inside, f"is not below attempts_root {shown(outer.address)}")
    identifier = subject.get("run.id")
    for group in (DURABLE, (CHECKPOINTS, ATTEMPTS)):
        first, *others = (stated[path] for path in group)
        for other in others:
            if _parent(other) != _parent(first) and not {first.path, other.path} & twice:
                yield _apart(other, f"is not beside {first.name} {shown(first.address)}")
        if isinstance(identifier, str) and not _is_of(identifier, _parent(first)):
            yield _apart(first, f"is not that of the run {shown(identifier)}")


def _apart(place: Place, problem: str) -> Finding:
    return Finding(
        path=place.path,
        message=f"{place.name} {shown(place.address)} {problem}",
        repair="use the place that belongs to run.id",
        severity="warning",
    )


def _parent(place: Place) -> str:
    return place.address.rstrip("/").rpartition("/")[0]


def _is_of(identifier: str, root: str) -> bool:
    """Whether the root ends with the <name>/<version> of which `identifier` is <name>-<version>."""
    name, _, version = root.rpartition("/")
    return identifier.endswith(f"-{version}") and name.endswith(f"/{identifier.removesuffix(f'-{version}')}")


CHECKS = (exe_26, exe_31, exe_32)
