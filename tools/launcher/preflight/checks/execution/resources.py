"""CPUs, memory, disk and GPUs of one node."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import is_embedded
from tools.launcher.preflight.checks.geometry.in_step import (
    WIDTH,
    placement_repair,
    same_width,
    widths_differ,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.sizes import AUTOMATIC, GIB, Size, in_gib, size_of, size_text
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import set_to, shown

_ALLOCATION = "iris.allocation"
_CPU = f"{_ALLOCATION}.cpu"
_VARIANT = f"{_ALLOCATION}.gpu_variant"
_SIZES = ("memory", "disk")

_FULL_UNITS = frozenset(f"{letter}{rest}" for letter in "kmgtp" for rest in ("b", "i", "ib"))
_MIB = 2**20
_SMALLEST = _MIB
"""Bytes; no container starts with less, so a smaller size has lost its unit."""


class _Request(NamedTuple):
    """One size field of the allocation."""

    field: str
    path: str
    written: str
    size: Size | None
    """None where the text is no size."""


def _requests(subject: PreflightSubject) -> Iterator[_Request]:
    """Yield memory and disk as written, unless the launcher measures them itself.

    Raises:
        UnreadableValue: after the last, for the first that is no text.
    """
    unreadable: UnreadableValue | None = None
    for field in _SIZES:
        path = f"{_ALLOCATION}.{field}"
        value = subject.get(path)
        written = size_text(value)
        if written is None:
            unreadable = unreadable or UnreadableValue(f"{path} as a size, it is {shown(value)}")
        elif written != AUTOMATIC:
            yield _Request(field, path, written, size_of(written))
    if unreadable is not None:
        raise unreadable


@check(
    "EXE-04",
    "memory and disk are sizes",
    area="execution",
    rule="memory, disk: a number > 0 with a unit, such as 700GB, or exactly auto",
    prevents="The typing error is found at submission; an empty text or zero asks for nothing.",
    inputs=("spec",),
    source="catalogue EXE-04 (#103), case 99f; nobody checks it",
)
def exe_04(subject: PreflightSubject) -> Iterator[Finding]:
    for request in _requests(subject):
        size = request.size
        if size is None or size.bytes <= 0:
            problem = "is not a size that Iris reads" if size is None else "asks for nothing"
            yield Finding(
                path=request.path,
                message=f"{request.field} {shown(request.written)} {problem}. Write a number with its unit, such as 700GB, "
                f"or {AUTOMATIC}",
                repair=set_to(request.path, AUTOMATIC, "700GB" if request.field == "memory" else "2TB"),
            )


@check(
    "EXE-30",
    "memory and disk are those of a node",
    area="execution",
    rule="memory, disk >= 1 MiB, and not less than 1 GiB (warning); a number without unit counts bytes",
    prevents="The pod is killed before anything starts, or as soon as Python imports the trainer.",
    inputs=("spec",),
    source="contract runtime-facts.md §14: a plain number is bytes; nobody checks it",
)
def exe_30(subject: PreflightSubject) -> Iterator[Finding]:
    for request in _requests(subject):
        size = request.size
        if size is not None and 0 < size.bytes < _SMALLEST:
            why = ": a number without unit counts bytes" if not size.unit else ""
            meant = f"{size.number}GB" if not size.unit else AUTOMATIC
            yield Finding(
                path=request.path,
                message=f"{request.field} {shown(request.written)} is {size.bytes} bytes{why}",
                repair=set_to(request.path, *dict.fromkeys((meant, AUTOMATIC))),
            )
        elif size is not None and _SMALLEST <= size.bytes < GIB and not is_embedded(subject):
            yield Finding(
                path=request.path,
                message=f"{request.field} {shown(request.written)} is {size.bytes / _MIB:.4g} MiB: no training task fits into "
                "less than 1 GiB",
                repair=set_to(request.path, *dict.fromkeys((f"{size.number}GB", AUTOMATIC))),
                severity="warning",
            )


@check(
    "EXE-22",
    "sizes are written with a full unit",
    area="execution",
    rule="the unit is KB, MB, GB, TB, PB, or Ki to Pi; Iris looks at its first letter only and reads GB as GiB",
    prevents='2TB asks for 2 TiB, and "700 gazillion" is 700 GiB.',
    inputs=("spec",),
    source="catalogue EXE-22 (new), contract runtime-facts.md §14; nobody checks it",
    implied_by=("EXE-30",),
)
def exe_22(subject: PreflightSubject) -> Iterator[Finding]:
    for request in _requests(subject):
        size = request.size
        if size is None or size.bytes <= 0 or size.unit.lower() in _FULL_UNITS:
            continue
        if size.meaning == "B":
            unit = (
                f"the unit {shown(size.unit)} is read as bytes"
                if size.unit
                else "without a unit it is read as bytes"
            )
            repair = set_to(request.path, f"{max(1, math.ceil(size.bytes / GIB))}GB")
        else:
            unit = f"the unit {shown(size.unit)} is read as {size.meaning}"
            repair = set_to(request.path, f"{size.number}{size.meaning.removesuffix('B')}")
        yield Finding(
            path=request.path,
            message=f"{request.field} {shown(request.written)}: {unit}, so {in_gib(size.bytes)}",
            repair=repair,
            severity="warning",
        )


@check(
    "EXE-05",
    "a node has the CPUs, memory and disk",
    area="execution",
    rule="0 < cpu <= the node's; memory, disk <= what a node can give, in GiB",
    prevents="The pods stay pending for ever.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-05 (#104), cases n151, n154, n158; nobody checks it",
    implied_by=("EXE-30",),
)
def exe_05(subject: PreflightSubject) -> Iterator[Finding]:
    unknown: list[MissingFact | UnreadableValue] = []
    try:
        yield from _cpu_problems(subject)
    except (MissingFact, UnreadableValue) as missing:
        unknown.append(missing)
    try:
        for request in _requests(subject):
            if request.size is None:
                unknown.append(UnreadableValue(f"{request.path} as a size, it is {shown(request.written)}"))
                continue
            try:
                available = subject.cluster_fact(f"{request.field}_per_node_gb")
            except MissingFact as missing:
                unknown.append(missing)
                continue
            if available is not None and request.size.bytes > available * GIB:
                read = in_gib(request.size.bytes)
                yield Finding(
                    path=request.path,
                    message=f"{request.field} {request.written} is {read} for Iris and exceeds the {available:.7g} GiB that "
                    f"{_a_node(subject)} can give",
                    repair=set_to(request.path, f"{math.floor(available)}GB", AUTOMATIC),
                )
    except UnreadableValue as unreadable:
        unknown.append(unreadable)
    if unknown:
        # What the document lacks comes before what a card lacks.
        raise min(unknown, key=lambda missing: isinstance(missing, MissingFact))


def _cpu_problems(subject: PreflightSubject) -> Iterator[Finding]:
    cpu = _cpu(subject)
    if not cpu > 0 or not math.isfinite(cpu):
        yield Finding(
            path=_CPU,
            message=f"cpu={cpu:g} must be a positive number of CPUs per node",
            repair=set_to(_CPU, 48),
        )
        return
    available = subject.cluster_fact("cpu_per_node")
    if available is not None and cpu > available:
        yield Finding(
            path=_CPU,
            message=f"cpu={cpu:g} exceeds the {available:g} CPUs of {_a_node(subject)}",
            repair=set_to(_CPU, math.floor(available)),
        )


def _cpu(subject: PreflightSubject) -> float:
    """The number that the launcher reads; its schema types the field as float (OmegaConf)."""
    value = subject.get(_CPU)
    try:
        if type(value) in (int, float) or (isinstance(value, str) and value.isascii() and len(value) <= 20):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise UnreadableValue(f"{_CPU} as a number, it is {shown(value)}")


def _a_node(subject: PreflightSubject) -> str:
    card = subject.cluster
    if card is None:
        return "a node"
    return f"a node of {card.name} ({card.gpu_variant})" if card.gpu_variant else f"a node of {card.name}"


@check(
    "EXE-06",
    "the cluster has such nodes",
    area="execution",
    rule="gpu_variant and gpus_per_node are those of the cluster's nodes",
    prevents="The gang is never scheduled, or engines take the address of another node.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-06 (#105), failure row 43 (slime#2012), case n161; nobody checks it",
)
def exe_06(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    unknown: MissingFact | None = None
    try:
        yield from _variant_problems(subject)
    except MissingFact as missing:
        unknown = missing
    has = subject.cluster_fact("gpus_per_node")
    asked = geometry.gpus_per_node
    # An embedded cluster counts GPUs instead of having them, so that a part of a node is fine.
    wrong = has is not None and (asked > has if is_embedded(subject) else asked != has)
    if wrong and not widths_differ(subject):  # GEO-02, GEO-11
        card = subject.cluster
        yield Finding(
            path=WIDTH,
            message=f"the nodes of {card.name if card is not None else ''} have {has} GPUs, gpus_per_node={asked}",
            repair=placement_repair(subject, same_width(subject, has)),
        )
    if unknown is not None:
        raise unknown


def _variant_problems(subject: PreflightSubject) -> Iterator[Finding]:
    asked, has = subject.text(_VARIANT), subject.cluster_fact("gpu_variant")
    if has is None or asked == has:
        return
    card = subject.cluster
    case_only = asked.strip().lower() == has.lower()
    written = f"; it is written {shown(has)}" if case_only else ""
    yield Finding(
        path=_VARIANT,
        message=f"the nodes of {card.name if card is not None else ''} have {has} GPUs, gpu_variant={shown(asked)}{written}",
        repair=set_to(_VARIANT, has),
        severity="warning" if case_only else "error",
    )


CHECKS = (exe_04, exe_05, exe_06, exe_22, exe_30)
