"""How long what a run writes is kept, and where."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.graph.paths import TTL_STEPS_DAYS, rounded_ttl_days
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.places import (
    ATTEMPTS,
    CHECKPOINTS,
    DURABLE,
    TEMPORARY,
    Place,
    places,
)
from tools.launcher.preflight.checks.execution.reading import bare, integer, integers, rl_steps
from tools.launcher.preflight.findings import Finding, Severity
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject
from tools.launcher.preflight.wording import counted, listed, set_to, shown

_KEPT = "artifacts.resume_checkpoint_count"
_DRAFT_TTL = "artifacts.draft_model_cache_ttl_days"
_HOURS_PER_DAY = 24
_RETRIES = 3
"""What the launcher takes where the document names none (launch-document.md §4.4)."""


@check(
    "EXE-14",
    "what may expire is temporary, what must stay is not",
    area="execution",
    rule="on object storage checkpoints, attempts, rendezvous and logs are below tmp/ttl=<days>d/, exports and manifests "
    f"are not; days in {{{', '.join(map(str, TTL_STEPS_DAYS))}}}; no component 'iris'",
    prevents="A result is deleted, temporary data never is, or a run writes among the files of Iris.",
    inputs=("spec",),
    source="catalogue EXE-14 (#113), contract clusters-and-models.md §1.2; an older launcher",
)
def exe_14(subject: PreflightSubject) -> Iterator[Finding]:
    for place in places(subject, *TEMPORARY, *DURABLE):
        if not place.on_object_storage:
            continue  # Lifecycle rules are those of buckets.
        if "iris" in place.components[1:]:
            yield Finding(
                path=place.path,
                message=f"{place.name} {shown(place.address)} has a component 'iris', below which Iris keeps its own files",
                repair="use a path without a component 'iris'",
            )
        if place.path in DURABLE:
            if place.lifetime is not None:
                yield Finding(
                    path=place.path,
                    message=f"{place.name} {shown(place.address)} is below {bare(place.lifetime)}: the result of the run would be "
                    "deleted",
                    repair="use the output path <prefix>/<name>/<version>",
                )
        else:
            yield from _lifetime_problems(
                place, "error" if place.path in (CHECKPOINTS, ATTEMPTS) else "warning"
            )


def _lifetime_problems(place: Place, severity: Severity) -> Iterator[Finding]:
    """Rendezvous and logs are a few small files: that they stay is not worth a refusal."""
    bucket = bare("/".join(place.address.split("/")[:3]))
    if place.lifetime is None:
        yield Finding(
            path=place.path,
            message=f"{place.name} {shown(place.address)} has no ttl component: its objects are never deleted",
            repair=f"use a path below {bucket}/tmp/ttl=14d/",
            severity=severity,
        )
    elif place.days is None or place.days == 0:
        yield Finding(
            path=place.path,
            message=f"{place.name} has the lifetime {shown(place.lifetime)}, which is no number of days above zero",
            repair=f"use a path below {bucket}/tmp/ttl=14d/",
            severity=severity,
        )
    elif place.days not in TTL_STEPS_DAYS:
        step = rounded_ttl_days(place.days)
        yield Finding(
            path=place.path,
            message=f"{place.name} has the lifetime {place.lifetime}, for which buckets have no rule; they have "
            f"{listed(TTL_STEPS_DAYS)} days",
            repair=set_to(place.path, bare(place.address.replace(f"/{place.lifetime}/", f"/ttl={step}d/"))),
            severity="warning",
        )
    elif place.components[1:2] != ["tmp"] or place.components[2:3] != [place.lifetime]:
        yield Finding(
            path=place.path,
            message=f"{place.name} {shown(place.address)}: the rules of buckets look at tmp/{place.lifetime}/ at their root only",
            repair=f"use a path below {bucket}/tmp/{place.lifetime}/",
            severity="warning",
        )


@check(
    "EXE-15",
    "checkpoints outlive the run",
    area="execution",
    rule="days of ttl=<days>d >= timeout * (max_retries+1), else >= coordinator_timeout_hours",
    prevents="Checkpoints vanish during the run.",
    inputs=("spec",),
    source="catalogue EXE-15 (#114); nobody checks it",
)
def exe_15(subject: PreflightSubject) -> Iterator[Finding]:
    place = next(places(subject, CHECKPOINTS))
    days = place.days
    if days is None or days <= 0:
        return  # EXE-14's; without a lifetime nothing vanishes.
    timeout, retries = integer(subject, "iris.timeout") or 0, integer(subject, "iris.max_retries")
    limits: list[tuple[float, str]] = []
    if timeout > 0:
        tries = 1 + min(max(0, _RETRIES if retries is None else retries), MAX_COUNT)
        hours = min(timeout, MAX_COUNT) / 3600
        words = "1 try" if tries == 1 else f"{tries} tries"
        limits.append((hours * tries, f"timeout {hours:.4g} hours times {words}"))
    if subject.planned is not None:
        bound = max(
            (payload.execution.coordinator_timeout_hours for _, payload in rl_steps(subject)), default=0
        )
        if bound > 0:
            limits.append((min(bound, MAX_COUNT), f"coordinator_timeout_hours {shown(bound)}"))
    if not limits:
        raise MissingFact("a limit on how long the run takes: iris.timeout is 0, which means none")
    longest, why = min(limits)
    if days * _HOURS_PER_DAY < longest:
        enough = next((step for step in TTL_STEPS_DAYS if step * _HOURS_PER_DAY >= longest), None)
        yield Finding(
            path=CHECKPOINTS,
            message=f"checkpoints live {counted(days, 'day')}, shorter than {why}; the queue comes on top",
            repair=_longer_lifetime(subject, place, enough)
            if enough is not None
            else f"shorten the run: no lifetime is longer than {TTL_STEPS_DAYS[-1]} days",
            severity="warning",
        )


def _longer_lifetime(subject: PreflightSubject, place: Place, days: int) -> str:
    if subject.planned is not None:
        return f"set temporary_storage_ttl_days={days} in the retention"
    return set_to(place.path, bare(place.address.replace(f"/{place.lifetime}/", f"/ttl={days}d/")))


@check(
    "EXE-16",
    "checkpoints are kept",
    area="execution",
    rule="1 <= resume_checkpoint_count <= 5; temporary_storage_ttl_days > 0, and <= 30 to be kept as long as asked",
    prevents="The trainer refuses it after the GPUs were allocated, or there is nothing to resume from.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-16 (#115), case d31; Marin at build time, the trainer for 0",
)
def exe_16(subject: PreflightSubject) -> Iterator[Finding]:
    least, most = subject.manifest().resume_checkpoint_count
    if subject.planned is not None:
        for step, payload in rl_steps(subject):
            yield from _retention_problems(step.address, payload.spec.retention.temporary_storage_ttl_days)
    for path, value in integers(subject, _KEPT, _DRAFT_TTL):
        if path == _KEPT and not least <= value <= most:
            yield Finding(
                path=path,
                message=f"resume_checkpoint_count={shown(value)}; allowed are {least} to {most}",
                repair=set_to(path, *dict.fromkeys((min(max(least, 2), most), least, most))),
            )
        elif path == _DRAFT_TTL and value <= 0:
            yield Finding(
                path=path,
                message=f"draft_model_cache_ttl_days={shown(value)} keeps the draft model for no time",
                repair=set_to(path, 14),
                severity="warning",
            )


def _retention_problems(address: str, days: int) -> Iterator[Finding]:
    if days <= 0:
        yield Finding(
            path=address,
            message=f"temporary_storage_ttl_days={shown(days)} must be positive",
            repair=f"write one of {listed(TTL_STEPS_DAYS)}",
        )
    elif days > TTL_STEPS_DAYS[-1]:
        yield Finding(
            path=address,
            message=f"temporary_storage_ttl_days={shown(days)} becomes {TTL_STEPS_DAYS[-1]}: buckets have no longer lifetime",
            repair=f"write {TTL_STEPS_DAYS[-1]}",
            severity="warning",
        )


@check(
    "EXE-17",
    "checkpoints stay in the region of the job",
    area="execution",
    rule="the bucket of checkpoint_root is marin-<region> of the cluster",
    prevents="Checkpoints cross regions: slow and expensive.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-17 (#116), contract clusters-and-models.md §1.3; nobody checks it",
)
def exe_17(subject: PreflightSubject) -> Iterator[Finding]:
    place = next(places(subject, CHECKPOINTS))
    if not place.on_object_storage:
        return
    region = subject.cluster_fact("region")
    bucket = place.components[0]
    if not bucket.startswith("marin-"):
        raise MissingFact(f"the region of the bucket {bare(bucket)}")
    if region is not None and bucket != f"marin-{region}":
        yield Finding(
            path=CHECKPOINTS,
            message=f"checkpoints go to {bare(bucket)} while the job runs in {region}: they cross regions",
            repair=f"name a bucket in {region} as temp_bucket of the cluster card, if the cluster has one for temporary "
            "data. Else leave it so: a larger trainer.ckpt_interval sends fewer checkpoints",
            severity="warning",
        )


CHECKS = (exe_14, exe_15, exe_16, exe_17)
