"""Teachers of a distillation run."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject, is_count
from tools.launcher.preflight.teachers import (
    DEFAULT_PLACEMENT,
    RESOURCE_COUNTS,
    placement,
    teachers,
)
from tools.launcher.preflight.wording import below, listed, set_to, shown

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_SECRET_REFERENCE = re.compile(r"(?:env:|file:|gcp-secret://).+", re.DOTALL)
_RESIDENT = "skyrl.trainer.algorithm.distillation.residency.max_resident"


@check(
    "GEO-17",
    "teachers can be placed and read",
    area="geometry",
    rule="local teachers: resources present, total GPUs % tensor_parallel_size == 0, pinned groups distinct, one "
    "rotating slot; endpoints: HTTP(S) ending in /v1, credentials by reference, fingerprint sha256:<64 hex>",
    prevents="A teacher cannot be placed, or scores with another tokenizer.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-17 (#32), MarinSkyRL marinskyrl/distillation.py@068459a1; the launcher",
)
def geo_17(subject: PreflightSubject) -> Iterator[Finding]:
    declared = subject.get("skyrl.teachers")
    if declared is None:
        return
    if not isinstance(declared, dict):
        yield Finding(
            path="skyrl.teachers",
            message=f"teachers is {shown(declared)}, not a mapping from id to teacher",
            repair="write one mapping per teacher id",
        )
        return
    for name, settings in declared.items():
        if not isinstance(settings, dict):
            yield Finding(
                path=below("skyrl.teachers", name),
                message=f"teacher {shown(name)} is {shown(settings)}, not a mapping",
                repair="write source, model and evidence of the teacher",
            )
    for path, settings in teachers(subject):
        yield from _source_problems(subject, path, settings)
        if placement(settings) in ("pinned", "rotating"):
            yield from _resource_problems(path, settings)
        elif placement(settings) == "external":
            yield from _endpoint_problems(path, settings)
    yield from _group_problems(subject)


def _source_problems(subject: PreflightSubject, path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    supported = subject.manifest().teacher_sources or tuple(DEFAULT_PLACEMENT)
    source = settings.get("source")
    if source not in supported:
        yield Finding(
            path=f"{path}.source",
            message=f"teacher source {shown(source)} has no scoring adapter in this runtime. Known: {listed(supported)}",
            repair=_source_repair(path, settings, supported),
        )


def _source_repair(path: str, settings: dict[str, Any], supported: Sequence[str]) -> str:
    """The source for which the teacher has the settings, else words: a source alone is not enough."""
    for part, source in (("endpoints", "openai_compatible"), ("resources", "local_inference")):
        if settings.get(part) and source in supported:
            return set_to(f"{path}.source", source)
    return f"write a teacher of the source {' or '.join(supported)} with the settings that belong to it"


def _resource_problems(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    resources = settings.get("resources")
    if not isinstance(resources, dict):
        yield Finding(
            path=f"{path}.resources",
            message=f"a local teacher needs resources, got {shown(resources)}",
            repair=f"write {listed(RESOURCE_COUNTS)} and colocation_group",
        )
        return
    wrong = [name for name in RESOURCE_COUNTS if not is_count(resources.get(name))]
    for name in wrong:
        yield Finding(
            path=f"{path}.resources.{name}",
            message=f"{name} must be a positive integer, got {shown(resources.get(name))}",
            repair=set_to(f"{path}.resources.{name}", 1),
        )
    group = resources.get("colocation_group")
    if not isinstance(group, str) or not group.strip():
        yield Finding(
            path=f"{path}.resources.colocation_group",
            message=f"colocation_group must be a name, got {shown(group)}",
            repair="name the group of nodes after the teacher",
        )
    if wrong:
        return
    total, size = resources["num_nodes"] * resources["gpus_per_node"], resources["tensor_parallel_size"]
    if total % size:
        yield Finding(
            path=f"{path}.resources.tensor_parallel_size",
            message=f"{path.removeprefix('skyrl.')}: total_gpus={total} is not a multiple of "
            f"tensor parallel size {size}",
            repair=set_to(f"{path}.resources.tensor_parallel_size", 1),
        )


def _endpoint_problems(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    endpoints = settings.get("endpoints")
    if not isinstance(endpoints, list) or not endpoints:
        yield Finding(
            path=f"{path}.endpoints",
            message=f"an external teacher needs endpoints, got {shown(endpoints)}",
            repair="add an endpoint with url and max_concurrency",
        )
    for index, endpoint in enumerate(endpoints if isinstance(endpoints, list) else []):
        place = f"{path}.endpoints[{index}]"
        url = endpoint.get("url") if isinstance(endpoint, dict) else endpoint
        if not isinstance(url, str) or not _is_v1_url(url.strip()):
            yield Finding(
                path=f"{place}.url",
                message=f"endpoint {shown(url)} is no HTTP(S) address ending in /v1",
                repair="write the base address, such as https://host/v1",
            )
        credential = endpoint.get("auth") if isinstance(endpoint, dict) else None
        if credential is not None and not (
            isinstance(credential, str) and _SECRET_REFERENCE.fullmatch(credential)
        ):
            yield Finding(
                path=f"{place}.auth",
                # The value itself may be a secret and is not repeated.
                message="auth is not a reference to a credential (env:, file: or gcp-secret://)",
                repair="write a reference such as env:TEACHER_API_KEY",
            )
    fingerprint = settings.get("tokenizer_fingerprint")
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        yield Finding(
            path=f"{path}.tokenizer_fingerprint",
            message=f"tokenizer_fingerprint {shown(fingerprint)} is not sha256: and 64 lower-case hex digits",
            repair="write the fingerprint of the policy's tokenizer",
        )


def _is_v1_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.netloc)
        and parts.path.rstrip("/").endswith("/v1")
        and not parts.query
        and not parts.fragment
    )


def _group_problems(subject: PreflightSubject) -> Iterator[Finding]:
    pinned: dict[str, str] = {}
    rotating: dict[str, Any] | None = None
    for path, settings in teachers(subject):
        resources, where = settings.get("resources"), placement(settings)
        group = resources.get("colocation_group") if isinstance(resources, dict) else None
        if not isinstance(resources, dict) or not isinstance(group, str):
            continue
        if where == "pinned":
            first = pinned.setdefault(group, path)
            if first != path:
                yield Finding(
                    path=f"{path}.resources.colocation_group",
                    message=f"pinned teachers {first} and {path} share the group {shown(group)}",
                    repair="give each pinned teacher a group of its own",
                )
        elif where == "rotating":
            rotating = resources if rotating is None else rotating
            if resources != rotating:
                yield Finding(
                    path=f"{path}.resources",
                    message="rotating teachers share one slot, but their resources differ",
                    repair="give all rotating teachers the same resources",
                )
    slots = subject.get(_RESIDENT)
    if rotating is not None and rotating["colocation_group"] in pinned:
        yield Finding(
            path=f"{pinned[rotating['colocation_group']]}.resources.colocation_group",
            message=f"pinned and rotating teachers share the group {shown(rotating['colocation_group'])}",
            repair="give the pinned teacher a group of its own",
        )
    if rotating is not None and slots is not None and (type(slots) is not int or slots != 1):
        yield Finding(
            path=_RESIDENT,
            message=f"max_resident={shown(slots)}: there is exactly one rotating slot",
            repair=set_to(_RESIDENT, 1),
        )


CHECKS = (geo_17,)
