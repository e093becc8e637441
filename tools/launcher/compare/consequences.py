"""What the difference of two launches means for whoever starts the second where the first was.

Sentences are written once here; every form of the report shows the same ones.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.compare.fields import FieldChange, field_changes
from tools.launcher.compare.identity import IdentityChange, identity_change
from tools.launcher.compare.resume import resume_consequence
from tools.launcher.compare.side import Side
from tools.launcher.compare.sizes import ELSEWHERE, OWN_NODES, SHARED, Size, Sizes, sizes_of
from tools.launcher.compare.verdicts import Consequence
from tools.launcher.compare.wording import NAMED, brief, named
from tools.launcher.graph.versions import is_mutable
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted

SHORT = 8
"""Digits of a digest that people read, as in names of jobs."""


class SmokeComparison(BaseModel):
    """Whether a smoke run of the first launch is one for the second.

    Attributes:
        differences: what its shape lacks, one sentence each.
        unknown: why the shapes cannot be compared, "" if they can.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    differences: tuple[str, ...]
    unknown: str


class Comparison(BaseModel):
    """Two launches, what differs and what that means.

    Attributes:
        a, b: the two.
        changes: of their documents, by field.
        beside: likewise, of what their graphs say that their documents do not; nothing where one has no graph.
        identity: whether they learn the same.
        consequences: one for each aspect, in reading order.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    a: Side
    b: Side
    changes: tuple[FieldChange, ...]
    beside: tuple[FieldChange, ...]
    identity: IdentityChange
    consequences: tuple[Consequence, ...]

    @property
    def equal(self) -> bool:
        """Whether both are the same document, learn the same, and are launched alike."""
        return not self.changes and not self.beside and not self.identity.changed


def compare(a: Side, b: Side, smoke: SmokeComparison) -> Comparison:
    """Return what changes from `a` to `b`.

    Args:
        a, b: the two launches.
        smoke: how the smoke gate compares their shapes.
    """
    changes = field_changes(a.document, b.document)
    identity = identity_change(a, b, changes)
    before, after = sizes_of(a.subject), sizes_of(b.subject)
    return Comparison(
        a=a,
        b=b,
        changes=changes,
        beside=() if None in (a.beside, b.beside) else field_changes(a.beside or {}, b.beside or {}),
        identity=identity,
        consequences=(
            _engines(before, after),
            _gpus(before, after),
            _policy(before, after),
            _batches(before, after),
            _gpu_hours(a, b, before, after),
            _identity(a, b, identity, changes),
            resume_consequence(a, b, identity, before.get("policy_split") == after.get("policy_split")),
            _smoke(smoke),
        ),
    )


def _engines(before: Sizes, after: Sizes) -> Consequence:
    def words(sizes: Sizes) -> str | None:
        values = [sizes.get(name) for name in _ENGINE]
        if any(value is None for value in values):
            return None
        engines, gpus, *parallel = values
        layout = ", ".join(f"{name} {size}" for name, size in zip(_PARALLEL, parallel, strict=True))
        return f"{counted(_int(engines), 'engine')} of {counted(_int(gpus), 'GPU')} ({layout})"

    return _two_states("engines", words(before), words(after), _missing(before, after, _ENGINE))


_PARALLEL = ("TP", "PP", "DP", "EP")
_ENGINE = ("engines", "engine_gpus", "engine_tp", "engine_pp", "engine_dp", "engine_ep")


_GPUS = (
    "gpus",
    "nodes",
    "gpus_per_node",
    "gpu_variant",
    "policy_ranks",
    "reference_ranks",
    "reference_at",
    "engine_ranks",
    "engines_at",
    "draft_gpus",
    "teacher_gpus",
    "used_gpus",
)
_SHARED_WORDS = {SHARED: " on the same GPUs", OWN_NODES: "", ELSEWHERE: " elsewhere"}
_MOVED_WORDS = {SHARED: " on the policy's GPUs", OWN_NODES: " on nodes of their own", ELSEWHERE: " elsewhere"}
_REFERENCE_WORDS = {SHARED: " on the policy's GPUs", OWN_NODES: " on nodes of its own"}


def _gpus(before: Sizes, after: Sizes) -> Consequence:
    missing = _missing(before, after, _GPUS)
    if missing:
        return Consequence(aspect="GPUs", verdict="not_known", sentence=f"not known: needs {missing}")
    each = {name: _arrow(before.get(name), after.get(name)) for name in _GPUS}
    sentence = (
        f"{each['gpus']} on {each['nodes']} x {each['gpus_per_node']} {brief(each['gpu_variant'])}: "
        f"policy {each['policy_ranks']}, "
        f"reference {_placed(before, after, 'reference', {}, _REFERENCE_WORDS)}, "
        f"engines {_placed(before, after, 'engine', _SHARED_WORDS, _MOVED_WORDS)}"
    )
    for name, words in (("draft_gpus", "draft training"), ("teacher_gpus", "teachers")):
        if before.get(name) or after.get(name):
            sentence += f", {words} {each[name]}"
    if any(sizes.get("used_gpus") != sizes.get("gpus") for sizes in (before, after)):
        sentence += f"; {each['used_gpus']} used"
    same = all(before.get(name) == after.get(name) for name in _GPUS)
    return Consequence(
        aspect="GPUs",
        verdict="same" if same else "changed",
        sentence=f"as before: {sentence}" if same else sentence,
        before={name: before.get(name) for name in (*_GPUS, "engine_nodes")},
        after={name: after.get(name) for name in (*_GPUS, "engine_nodes")},
    )


def _placed(before: Sizes, after: Sizes, role: str, staying: dict[str, str], moving: dict[str, str]) -> str:
    """Ranks of a role, and where they are if that is to be told: a role without ranks is nowhere."""
    ranks = [sizes.get(f"{role}_ranks") for sizes in (before, after)]
    places = [
        str(sizes.get(_AT[role])) if count else None
        for sizes, count in zip((before, after), ranks, strict=True)
    ]
    if None in places or places[0] == places[1]:
        return f"{_arrow(*ranks)}{staying.get(places[1] or places[0] or '', '')}"
    return " -> ".join(f"{count}{moving[str(place)]}" for count, place in zip(ranks, places, strict=True))


_AT = {"reference": "reference_at", "engine": "engines_at"}


def _policy(before: Sizes, after: Sizes) -> Consequence:
    def words(sizes: Sizes) -> str | None:
        ranks, layout = sizes.get("policy_ranks"), sizes.get("policy_layout")
        return None if ranks is None or layout is None else f"{counted(_int(ranks), 'rank')} ({layout})"

    missing = _missing(before, after, ("policy_ranks", "policy_layout"))
    return _two_states("policy", words(before), words(after), missing)


_BATCH = (
    "prompts_per_step",
    "samples_per_prompt",
    "answers_per_step",
    "rows_per_step",
    "window_tokens",
    "tokens_per_step_at_most",
    "optimizer_steps",
    "rows_per_rank",
    "micro_steps",
)


def _batches(before: Sizes, after: Sizes) -> Consequence:
    missing = _missing(before, after, _BATCH)
    if missing:
        return Consequence(aspect="step", verdict="not_known", sentence=f"not known: needs {missing}")
    each = {name: _arrow(before.get(name), after.get(name)) for name in _BATCH}
    same = all(before.get(name) == after.get(name) for name in _BATCH)
    selected = any(sizes.get("answers_per_step") != sizes.get("rows_per_step") for sizes in (before, after))
    answers = f"{each['answers_per_step']} answers, of which " if selected else ""
    sentence = (
        f"{each['prompts_per_step']} prompts x {each['samples_per_prompt']} samples = "
        f"{answers}{each['rows_per_step']} rows, "
        f"at most {each['tokens_per_step_at_most']} tokens (window {each['window_tokens']}); "
        f"optimizer steps {each['optimizer_steps']}, micro steps in each {each['micro_steps']}"
    )
    return Consequence(
        aspect="step",
        verdict="same" if same else "changed",
        sentence=f"as before: {sentence}" if same else sentence,
        before={name: before.get(name) for name in _BATCH},
        after={name: after.get(name) for name in _BATCH},
    )


def _gpu_hours(a: Side, b: Side, before: Sizes, after: Sizes) -> Consequence:
    needs = next(
        (f"{name}'s {side.gpu_hours_needs}" for name, side in (("A", a), ("B", b)) if side.gpu_hours_needs),
        "",
    )
    if needs:
        limits = [_limits(side.subject) for side in (a, b)]
        return Consequence(
            aspect="GPU-hours",
            verdict="not_known",
            sentence=f"not known: needs {needs}",
            matters=before.get("gpus") != after.get("gpus") or limits[0] != limits[1],
        )
    same = a.gpu_hours == b.gpu_hours
    most = f"at most {_arrow(_number(a.gpu_hours), _number(b.gpu_hours))} for one launch"
    return Consequence(
        aspect="GPU-hours",
        verdict="same" if same else "changed",
        sentence=f"as before: {most}" if same else most,
        before=a.gpu_hours,
        after=b.gpu_hours,
    )


def _limits(subject: PreflightSubject) -> tuple[Any, Any]:
    """Its timeout, and the retries that it is multiplied by if there is one."""
    timeout = subject.get("iris.timeout")
    return timeout, subject.get("iris.max_retries") if timeout else None


def _identity(a: Side, b: Side, identity: IdentityChange, changes: Sequence[FieldChange]) -> Consequence:
    launch = f"launch {_arrow(_short(a.launch), _short(b.launch))}"
    digests = (
        f"recipe {_arrow(_short(a.recipe), _short(b.recipe))}, {launch}" if a.recipe and b.recipe else launch
    )
    return Consequence(
        aspect="identity",
        verdict="changed" if identity.changed else "not_known" if identity.unsure else "same",
        sentence=f"{_identity_words(a, b, identity, changes)}; {digests}",
        before={"recipe": a.recipe, "launch": a.launch, "address": a.address},
        after={"recipe": b.recipe, "launch": b.launch, "address": b.address},
    )


def _identity_words(a: Side, b: Side, identity: IdentityChange, changes: Sequence[FieldChange]) -> str:
    if not identity.changed:
        if not changes:
            return "the same document"
        if identity.basis == "recipe digests":
            return "the same recipe, only the placement moved"
        if identity.unsure:
            where = named(identity.unsure)
            return f"the same recipe, unless {where} names other content, which takes both graphs to tell"
        return "the same recipe, as far as the documents alone tell"
    if not identity.fields:
        hidden = "what the document does not show, such as the content of an input"
        return f"changed by {hidden}: {_new_version(a, b)}"
    return f"changed by {named(identity.fields)}: {_new_version(a, b)}"


def _new_version(a: Side, b: Side) -> str:
    if a.address is None or b.address is None:
        return "name and version are not known"
    if a.address[0] != b.address[0]:
        return f"another run, {brief(b.address[0])}"
    before, after = brief(a.address[1]), brief(b.address[1])
    if before != after:
        return f"a version of its own, {before} -> {after}"
    if a.recipe is not None and a.recipe in b.compatible:
        return f"the version ledger lets {after} mean both"
    if is_mutable(after):
        return f"{after} is no fixed version and may change"
    return f"{after} cannot mean both, publish a new version"


def _smoke(smoke: SmokeComparison) -> Consequence:
    if smoke.differences:
        return Consequence(
            aspect="smoke",
            verdict="not_valid",
            sentence="a smoke of A does not count for B: " + "; ".join(_few(smoke.differences)),
            after=list(smoke.differences),
        )
    if smoke.unknown:
        return Consequence(
            aspect="smoke",
            verdict="not_known",
            sentence=f"not known whether a smoke of A counts for B: {smoke.unknown}",
        )
    return Consequence(
        aspect="smoke", verdict="valid", sentence="a verified smoke of A counts for B: the shape is the same"
    )


def _few(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - NAMED
    return [*map(brief, sentences[:NAMED]), *([f"and {more} more"] if more > 0 else [])]


def _two_states(
    aspect: Literal["engines", "policy"], before: str | None, after: str | None, missing: str
) -> Consequence:
    if before is None or after is None:
        return Consequence(aspect=aspect, verdict="not_known", sentence=f"not known: needs {missing}")
    same = before == after
    return Consequence(
        aspect=aspect,
        verdict="same" if same else "changed",
        sentence=f"as before: {after}" if same else f"{before} -> {after}",
        before=before,
        after=after,
    )


def _missing(before: Sizes, after: Sizes, names: Sequence[str]) -> str:
    needs = [
        f"{side}'s {sizes.unknown[name]}"
        for side, sizes in (("A", before), ("B", after))
        for name in names
        if name in sizes.unknown
    ]
    return next(iter(needs), "")


def _int(value: Size | None) -> int:
    return value if isinstance(value, int) else 0


def _arrow(before: Any, after: Any) -> str:
    return f"{after}" if before == after else f"{before} -> {after}"


def _short(digest: str | None) -> str:
    return "unknown" if digest is None else digest[:SHORT]


def _number(value: float | None) -> str:
    return f"{value:.15g}" if value is not None else "unknown"
