"""Distillation: what is learned from teachers, and how their scores are routed.

Where teachers run is GEO-17. Source of the rules: MarinSkyRL marinskyrl/distillation.py@068459a1.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.bounds import NOT_NEGATIVE, POSITIVE
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject, is_count
from tools.launcher.preflight.teachers import DEFAULT_PLACEMENT, placement, teachers
from tools.launcher.preflight.wording import below, delete, listed, set_to, shown

_PLAN = "skyrl.trainer.algorithm.distillation"
_TEACHERS = "skyrl.teachers"
_ROUTING = "skyrl.teacher_routing"

_PLACEMENTS = {
    "openai_compatible": ("external",),
    "local_inference": ("pinned", "rotating"),
    "frozen_worker": ("pinned",),
    "resident": ("co_resident",),
}
"""Source of a teacher -> where it may run; the first is the default (teachers.DEFAULT_PLACEMENT)."""
_EXTERNAL_ONLY = ("endpoints", "tokenizer_fingerprint", "max_sequence_length", "request_timeout_seconds")
_TOP_K_EVIDENCE = "topk_distribution"


def _doubt(*, path: str, message: str, repair: str) -> Finding:
    """What this commit refuses is known of its neighbours only (contract, runtime-facts.md §10): a warning."""
    return Finding(path=path, message=message, repair=repair, severity="warning")


@check(
    "OBJ-26",
    "teachers are written in the runtime's words",
    area="objective",
    rule="known fields; placement fits the source; evidence known, top_k with topk_distribution and only then; model "
    "has path and revision; backend vllm for local_inference only; endpoint settings for openai_compatible only",
    prevents="The launcher may refuse the document; its rules are known of neighbouring commits.",
    inputs=("spec", "runtime"),
    source="contract runtime-facts.md §10, MarinSkyRL marinskyrl/distillation.py@068459a1; the launcher",
)
def obj_26(subject: PreflightSubject) -> Iterator[Finding]:
    for path, settings in teachers(subject):
        yield from _field_problems(subject, path, settings, "teacher")
        for name in ("model", "resources"):
            if isinstance(settings.get(name), dict):
                yield from _field_problems(subject, f"{path}.{name}", settings[name], name)
        endpoints = settings.get("endpoints")
        for index, endpoint in enumerate(endpoints if isinstance(endpoints, list) else []):
            place = f"{path}.endpoints[{index}]"
            if isinstance(endpoint, dict):
                yield from _field_problems(subject, place, endpoint, "endpoint")
            yield from _endpoint_problems(place, endpoint)
        yield from _source_problems(path, settings)
        yield from _evidence_problems(subject, path, settings)
        yield from _model_problems(path, settings)


def _field_problems(
    subject: PreflightSubject, path: str, content: dict[Any, Any], kind: str
) -> Iterator[Finding]:
    fields = subject.manifest().distillation_fields
    if fields is None:
        raise MissingFact("distillation_fields in the runtime manifest")
    known = fields.get(kind, ())
    for field in sorted(set(content) - set(known), key=str):
        near = get_close_matches(str(field), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Its fields: {listed(known)}"
        yield _doubt(
            path=below(path, field),
            message=f"{path.removeprefix('skyrl.')} has no field {shown(field)}. {hint}",
            repair=delete(below(path, field)),
        )


def _endpoint_problems(path: str, endpoint: Any) -> Iterator[Finding]:
    if not isinstance(endpoint, dict):
        yield _doubt(
            path=path,
            message=f"an endpoint is {shown(endpoint)}, not a mapping",
            repair="write url and max_concurrency",
        )
    elif not is_count(endpoint.get("max_concurrency")):
        yield _doubt(
            path=f"{path}.max_concurrency",
            message=f"max_concurrency must be a positive integer, got {shown(endpoint.get('max_concurrency'))}",
            repair=set_to(f"{path}.max_concurrency", 16),
        )


def _source_problems(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    source = settings.get("source")
    if not isinstance(source, str) or source not in DEFAULT_PLACEMENT:
        return  # GEO-17
    allowed, where = _PLACEMENTS[source], placement(settings)
    if where not in allowed:
        yield _doubt(
            path=f"{path}.placement",
            message=f"a teacher of source {source} cannot be {shown(where)}. Placements: {listed(allowed)}",
            repair=set_to(f"{path}.placement", *allowed),
        )
    if source != "openai_compatible":
        for name in _EXTERNAL_ONLY:
            if settings.get(name):
                yield _doubt(
                    path=f"{path}.{name}",
                    message=f"{name} is for openai_compatible teachers, the source is {source}",
                    repair=delete(f"{path}.{name}"),
                )
    else:
        yield from _external_problems(path, settings)
    backend = settings.get("backend")
    if source == "local_inference" and backend != "vllm":
        yield _doubt(
            path=f"{path}.backend",
            message=f"a local_inference teacher needs backend vllm, got {shown(backend)}",
            repair=set_to(f"{path}.backend", "vllm"),
        )
    elif source != "local_inference" and backend is not None:
        yield _doubt(
            path=f"{path}.backend",
            message=f"backend is for local_inference teachers, the source is {source}",
            repair=delete(f"{path}.backend"),
        )


def _external_problems(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    if settings.get("resources") is not None:
        yield _doubt(
            path=f"{path}.resources",
            message="an external teacher reserves no nodes: resources is set",
            repair=delete(f"{path}.resources"),
        )
    if not is_count(settings.get("max_sequence_length")):
        yield _doubt(
            path=f"{path}.max_sequence_length",
            message=f"max_sequence_length must be a positive integer, got {shown(settings.get('max_sequence_length'))}",
            repair="write the window of the teacher in tokens",
        )
    timeout: Any = settings.get("request_timeout_seconds")
    if type(timeout) not in (int, float) or not POSITIVE.holds(timeout):
        yield _doubt(
            path=f"{path}.request_timeout_seconds",
            message=f"request_timeout_seconds must be {POSITIVE}, got {shown(timeout)}",
            repair=set_to(f"{path}.request_timeout_seconds", 600),
        )


def _evidence_problems(subject: PreflightSubject, path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    objectives = subject.manifest().distillation_objectives
    if objectives is None:
        raise MissingFact("distillation_objectives in the runtime manifest")
    evidence, top_k = settings.get("evidence"), settings.get("top_k")
    known = sorted(set(objectives.values()))
    if evidence not in known:
        yield _doubt(
            path=f"{path}.evidence",
            message=f"evidence is {shown(evidence)}. Known: {listed(known)}",
            repair=set_to(f"{path}.evidence", *known),
        )
    elif evidence == _TOP_K_EVIDENCE and not is_count(top_k):
        yield _doubt(
            path=f"{path}.top_k",
            message=f"evidence {_TOP_K_EVIDENCE} needs top_k as a positive integer, got {shown(top_k)}",
            repair=set_to(f"{path}.top_k", 64),
        )
    elif evidence != _TOP_K_EVIDENCE and top_k is not None:
        yield _doubt(
            path=f"{path}.top_k",
            message=f"top_k={shown(top_k)} is for {_TOP_K_EVIDENCE}, the evidence is {evidence}",
            repair=delete(f"{path}.top_k"),
        )


def _model_problems(path: str, settings: dict[str, Any]) -> Iterator[Finding]:
    model = settings.get("model")
    parts = [model.get(name) if isinstance(model, dict) else None for name in ("path", "revision")]
    if not all(isinstance(part, str) and part.strip() for part in parts):
        yield _doubt(
            path=f"{path}.model",
            message=f"a teacher needs model.path and model.revision, got {listed(shown(part) for part in parts)}",
            repair="write path and revision of the teacher's model",
        )


@check(
    "OBJ-27",
    "the distillation plan has teachers and a route to each",
    area="objective",
    rule="teachers and teacher_routing only with trainer.algorithm.distillation; objective and reward_mode known, "
    "coefficient > 0; routing_plan exists and routes to every teacher; evidence is the objective's",
    prevents="The launcher may refuse the document; its rules are known of neighbouring commits.",
    inputs=("spec", "runtime"),
    source="contract runtime-facts.md §10, MarinSkyRL marinskyrl/distillation.py@068459a1; the launcher",
)
def obj_27(subject: PreflightSubject) -> Iterator[Finding]:
    plan = subject.get(_PLAN)
    for path in (_TEACHERS, _ROUTING):
        if subject.declares(path) and not subject.has(path):
            yield _doubt(
                path=path,
                message=f"{path.removeprefix('skyrl.')} is null, which is no mapping",
                repair=delete(path),
            )
    if plan is None:
        for path in (_TEACHERS, _ROUTING):
            if subject.get(path):
                yield _doubt(
                    path=path,
                    message=f"{path.removeprefix('skyrl.')} needs trainer.algorithm.distillation, which is not set",
                    repair=delete(path),
                )
        return
    if not isinstance(plan, dict) or not plan:
        problem = "empty" if plan == {} else f"{shown(plan)}, not a mapping"
        yield _doubt(path=_PLAN, message=f"distillation is {problem}", repair=delete(_PLAN))
        return
    yield from _plan_problems(subject, plan)
    yield from _route_problems(subject, plan)


def _plan_problems(subject: PreflightSubject, plan: dict[str, Any]) -> Iterator[Finding]:
    manifest = subject.manifest()
    yield from _field_problems(subject, _PLAN, plan, "plan")
    residency = plan.get("residency")
    if isinstance(residency, dict):
        yield from _residency_problems(subject, residency)
    objectives, modes = manifest.distillation_objectives, manifest.distillation_reward_modes
    if objectives is None or modes is None:
        raise MissingFact("distillation_objectives and distillation_reward_modes in the runtime manifest")
    objective = plan.get("objective")
    for name, value, known in (
        ("objective", objective, tuple(objectives)),
        ("reward_mode", plan.get("reward_mode"), modes),
    ):
        if value not in known:
            yield _doubt(
                path=f"{_PLAN}.{name}",
                message=f"distillation.{name} is {shown(value)}. Supported: {listed(known)}",
                repair=set_to(f"{_PLAN}.{name}", *known),
            )
    coefficient: Any = plan.get("coefficient")
    if type(coefficient) not in (int, float) or not POSITIVE.holds(coefficient):
        yield _doubt(
            path=f"{_PLAN}.coefficient",
            message=f"distillation.coefficient must be {POSITIVE}, got {shown(coefficient)}",
            repair=set_to(f"{_PLAN}.coefficient", 1),
        )
    wanted = objectives.get(objective) if isinstance(objective, str) else None
    for path, settings in teachers(subject):
        evidence = settings.get("evidence")
        if wanted is not None and evidence in objectives.values() and evidence != wanted:
            yield _doubt(
                path=f"{path}.evidence",
                message=f"objective {objective} needs evidence {wanted}, got {evidence}",
                repair=set_to(f"{path}.evidence", wanted),
            )


def _residency_problems(subject: PreflightSubject, residency: dict[str, Any]) -> Iterator[Finding]:
    yield from _field_problems(subject, f"{_PLAN}.residency", residency, "residency")
    for name, right, rule, usual in (
        ("max_resident", is_count(residency.get("max_resident")), "a positive integer", 1),
        ("minimum_residency_seconds", _lasts(residency.get("minimum_residency_seconds")), NOT_NEGATIVE, 60),
    ):
        if not right:
            yield _doubt(
                path=f"{_PLAN}.residency.{name}",
                message=f"residency.{name} must be {rule}, got {shown(residency.get(name))}",
                repair=set_to(f"{_PLAN}.residency.{name}", usual),
            )


def _lasts(seconds: Any) -> bool:
    return type(seconds) in (int, float) and NOT_NEGATIVE.holds(seconds)


def _route_problems(subject: PreflightSubject, plan: dict[str, Any]) -> Iterator[Finding]:
    declared = subject.get(_TEACHERS)
    names = [name for name in declared if isinstance(name, str)] if isinstance(declared, dict) else []
    if not names:
        yield _doubt(
            path=_TEACHERS,
            message="distillation without teachers",
            repair="write the teachers, or delete skyrl.trainer.algorithm.distillation",
        )
        return
    wanted, routings = plan.get("routing_plan"), subject.get(_ROUTING)
    known = list(routings) if isinstance(routings, dict) else []
    if not isinstance(wanted, str) or not isinstance(routings, dict) or wanted not in routings:
        yield _doubt(
            path=f"{_PLAN}.routing_plan",
            message=f"routing_plan {shown(wanted)} is not in teacher_routing. It has: {listed(map(str, known)) or 'none'}",
            repair=set_to(f"{_PLAN}.routing_plan", *known)
            if known
            else "write the plan below teacher_routing",
        )
        return
    place, routing = below(_ROUTING, wanted), routings[wanted]
    routes = routing.get("routes") if isinstance(routing, dict) else None
    if not isinstance(routes, dict) or not routes:
        yield _doubt(
            path=f"{place}.routes",
            message=f"routing plan {shown(wanted)} has no routes",
            repair="write routes: name -> teacher and weight",
        )
        return
    yield from _field_problems(subject, place, routing, "routing")
    revision = routing.get("revision")
    if not isinstance(revision, str) or not revision.strip():
        yield _doubt(
            path=f"{place}.revision",
            message=f"routing plan {shown(wanted)} needs a revision as text, got {shown(revision)}",
            repair=set_to(f"{place}.revision", '"1"'),
        )
    reached = set()
    for key, route in sorted(routes.items(), key=lambda item: str(item[0])):
        path = below(f"{place}.routes", key)
        teacher = route.get("teacher") if isinstance(route, dict) else None
        if not isinstance(teacher, str) or teacher not in names:
            yield _doubt(
                path=f"{path}.teacher",
                message=f"route {shown(key)} names the teacher {shown(teacher)}. Teachers: {listed(names)}",
                repair=set_to(f"{path}.teacher", *names),
            )
            continue
        reached.add(teacher)
        yield from _field_problems(subject, path, route, "route")
        weight = route.get("weight")
        if type(weight) not in (int, float) or not POSITIVE.holds(weight):
            yield _doubt(
                path=f"{path}.weight",
                message=f"weight of route {shown(key)} must be {POSITIVE}, got {shown(weight)}",
                repair=set_to(f"{path}.weight", 1),
            )
    for name in names:
        if name not in reached:
            yield _doubt(
                path=below(_TEACHERS, name),
                message=f"no route of plan {shown(wanted)} leads to teacher {name}",
                repair=delete(below(_TEACHERS, name)),
            )


CHECKS = (obj_26, obj_27)
