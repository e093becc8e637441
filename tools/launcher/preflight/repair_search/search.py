"""The search: candidates in order of cost, each judged by the engine before it is proposed."""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import Area, Check
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.findings import UNUSABLE, PreflightReport, Proposal, Violation
from tools.launcher.preflight.repair_search.batches import BatchOption, batch_options
from tools.launcher.preflight.repair_search.facts import Facts
from tools.launcher.preflight.repair_search.paste import repair_text, role_plan_text
from tools.launcher.preflight.repair_search.placement import (
    EngineSizes,
    Roles,
    engine_key,
    engine_sizes,
    placements,
    role_options,
)
from tools.launcher.preflight.repair_search.plan import (
    BATCH_SETTINGS,
    PATHS,
    RECIPE,
    Current,
    Plan,
    changes_to,
    read_current,
)
from tools.launcher.preflight.repair_search.ranking import WARNING_DISTANCE, Cost, reshaped
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import counted, listed

MOST_PROPOSALS = 3
MOST_STEPS = 10
"""Most settings that a proposal changes."""
MOST_STEPS_MORE = 3
"""A proposal with more changes beyond those of the nearest is no near alternative to it."""
MOST_CANDIDATES = 12_000
"""Placements made in one stage of a search; each is joined with a few batches."""
MOST_JUDGED = 16
"""Candidates that the engine judges in one stage."""
_KEPT_PER_LEVEL = 24
_SAMPLES_TRIED = (2, 4, 8, 16)

AREAS: tuple[Area, ...] = ("geometry", "batches")
"""Areas whose errors start a search. Without one, an error of another area at a number of the plan does."""

_SETTLED_ELSEWHERE = ("GEO-15", "GEO-17", "GEO-18", "GEO-19", "GEO-20", "BAT-13")
"""Checks of these areas which no number of the plan satisfies: critic, teachers, recipe, sections, layout, selector."""
_PLAN_PATHS = tuple(path for name, path in PATHS.items() if name not in RECIPE)
_SAMPLING = "skyrl.trainer.algorithm.dynamic_sampling.type"


class SearchResult(NamedTuple):
    """What a search found."""

    proposals: tuple[Proposal, ...]
    """Those without warnings first, then the nearest; at most MOST_PROPOSALS."""
    why_none: str | None
    """Why there is none, where a search was asked for."""
    candidates: int
    """How many were made."""
    judged: int
    """How many the engine judged."""


_NO_SEARCH = SearchResult((), None, 0, 0)


def propose(subject: PreflightSubject, checks: Sequence[Check], report: PreflightReport) -> SearchResult:
    """Return the nearest settings under which all rules of geometry and batches hold.

    Nodes, widths, engines, TP, PP, DP, EP and batches are searched together. Recipe, model, data and cluster
    stay as they are; so do n and the colocation, unless nothing is legal with them. What is proposed has passed the
    engine: no error of geometry and batches, and no error that was not there before. `ranking.Cost` says what is
    near. Candidates are made by rising number of changes, so that the nearest come first, until there are enough and
    one of them has no warning; a candidate which does more than a proposal already does is left out, unless that
    spares a warning. The bounds of this module hold for every document.

    Args:
        subject: what was judged.
        checks: what judges it; the candidates are judged by the same.
        report: what the engine said of `subject`.
    """
    area = {check.id: check.area for check in checks}
    wanted = next(
        (areas for areas in (AREAS, ()) if any(_due(item, area[item.id], areas) for item in report.errors)),
        None,
    )
    if wanted is None:
        return _NO_SEARCH
    try:
        facts = Facts.of(subject)
        names = tuple(name for name in Plan._fields if facts.moves(name))
        current = read_current(subject, names)
    except (MissingFact, UnreadableValue) as unreadable:
        return SearchResult((), f"other settings cannot be judged without {unreadable}", 0, 0)
    return _Search(subject, checks, report, wanted, facts, current, names).run()


def _due(violation: Violation, area: Area, areas: Sequence[Area]) -> bool:
    """Whether a proposal owes that an error is gone: it is of `areas`, or of any at a number of the plan."""
    if violation.id in _SETTLED_ELSEWHERE or violation.path == _SAMPLING:
        return False
    return area in areas if areas else violation.path in _PLAN_PATHS


class _Candidate(NamedTuple):
    """A plan of a level; compares by how near it is."""

    distance: float
    gpus: int
    reshaped: int
    plan: Plan
    warnings: int
    """Those that can be told without the engine."""


class _Passed(NamedTuple):
    cost: Cost
    warnings: int
    """Those that other numbers may not have."""
    foreseen: int
    """Of them, `_Candidate.warnings`."""
    proposal: Proposal


class _Search:
    """One search and what it has used up."""

    def __init__(
        self,
        subject: PreflightSubject,
        checks: Sequence[Check],
        report: PreflightReport,
        wanted: Sequence[Area],
        facts: Facts,
        current: Current,
        names: tuple[str, ...],
    ) -> None:
        self._subject = subject
        self._checks = checks
        self._core = [check for check in checks if check.area in AREAS]
        self._area = {check.id: check.area for check in checks}
        self._errors_before = {(item.id, item.path) for item in report.errors}
        self._warnings_before = {(item.id, item.path) for item in report.warnings}
        self._said_before = {item.message for item in report.warnings}
        self._unusable_before = _unusable(report)
        self._wanted = wanted
        self._facts = facts
        self._current = current
        self._names = names
        self._sizes: dict[tuple[int, int], list[EngineSizes]] = {}
        self._candidates = 0
        self._judged = 0

    def run(self) -> SearchResult:
        """Try the stages in turn until one has a proposal."""
        now = self._current.plan
        kept = [now.samples] if self._samples_kept() else self._other_samples()
        flipped = now._replace(colocate_all=not now.colocate_all)
        stages = [(now, kept), (now, self._other_samples()), (flipped, kept)]
        if now.colocate_all and self._facts.apart:
            stages = stages[2:]
        elif not now.colocate_all and self._facts.stays_apart:
            stages = stages[:2]
        for start, samples in stages:
            passed = self._stage(start, samples)
            if passed:
                best = tuple(item.proposal for item in _best(passed))
                return SearchResult(best, None, self._candidates, self._judged)
        why = (
            f"no nodes, engines and batches with up to {MOST_STEPS} changes are legal as long as recipe, model, data "
            f"and cluster stay ({counted(self._candidates, 'candidate')})"
        )
        return SearchResult((), why, self._candidates, self._judged)

    def _samples_kept(self) -> bool:
        usable = "samples" not in self._current.unusable
        return usable and self._current.plan.samples >= self._facts.least_samples

    def _other_samples(self) -> list[int]:
        least = self._facts.least_samples
        return sorted({least, *(count for count in _SAMPLES_TRIED if count > least)})

    def _stage(self, start: Plan, samples: list[int]) -> list[_Passed]:
        roles = role_options(self._facts, self._current, start)
        batches = {
            (ranks, dispatch): _merged(
                batch_options(
                    self._facts,
                    self._current,
                    ranks=ranks,
                    dispatch=dispatch,
                    samples=count,
                )
                for count in samples
            )
            for ranks, dispatch in sorted({(each.ranks, each.dispatch) for each in roles})
        }
        most, most_judged = self._candidates + MOST_CANDIDATES, self._judged + MOST_JUDGED
        passed: list[_Passed] = []
        first = 1
        for steps in range(1, MOST_STEPS + 1):
            made = self._level(roles, batches, steps, most, passed)
            # One more than needed: what the engine warns of may change the order.
            wanted = max(len(passed), MOST_PROPOSALS) + 1
            for candidate in heapq.nsmallest(_KEPT_PER_LEVEL, made):
                if len(passed) == wanted or self._judged >= most_judged:
                    break
                judged = self._judge(candidate)
                if judged is not None and not self._is_surplus(judged, passed):
                    passed.append(judged)
            clean = any(item.warnings == 0 for item in passed)
            enough = passed and (
                (clean and len(passed) >= MOST_PROPOSALS) or steps >= first + MOST_STEPS_MORE
            )
            if enough or self._candidates >= most or self._judged >= most_judged:
                break
            first = first if passed else steps + 1
        return passed

    def _level(
        self,
        roles: list[Roles],
        batches: dict[tuple[int, int], dict[int, list[BatchOption]]],
        steps: int,
        most: int,
        passed: list[_Passed],
    ) -> Iterator[_Candidate]:
        """Yield the candidates of exactly `steps`."""
        settled = [(item.foreseen, self._changed(item.cost.plan)) for item in passed]
        for each in roles:
            options = batches[each.ranks, each.dispatch]
            if not options or each.steps + min(options) > steps:
                continue
            sizes = self._sizes_of(each.plan)
            for placed in placements(self._facts, self._current, each, sizes, steps - min(options)):
                self._candidates += 1
                if self._candidates > most:
                    return
                for option in options.get(steps - placed.steps, ()):
                    plan = placed.plan.having(dict(zip(BATCH_SETTINGS, option.values, strict=True)))
                    warnings = len(placed.warnings) + option.warnings
                    if any(foreseen <= warnings and _has(plan, done) for foreseen, done in settled):
                        continue
                    idle = len(placed.warnings) * WARNING_DISTANCE
                    distance = placed.distance + option.distance + idle
                    yield _Candidate(distance, plan.gpus, reshaped(self._current, plan), plan, warnings)

    def _is_surplus(self, judged: _Passed, passed: list[_Passed]) -> bool:
        """Whether it does more than a proposal does, and spares no warning by it."""
        return any(
            item.warnings <= judged.warnings and _has(judged.cost.plan, self._changed(item.cost.plan))
            for item in passed
        )

    def _sizes_of(self, plan: Plan) -> list[EngineSizes]:
        key = engine_key(plan)
        if key not in self._sizes:
            self._sizes[key] = engine_sizes(self._facts, self._current, plan)
        return self._sizes[key]

    def _changed(self, plan: Plan) -> list[tuple[str, int]]:
        return [(name, getattr(plan, name)) for name in self._names if self._current.moved(name, plan)]

    def _judge(self, candidate: _Candidate) -> _Passed | None:
        self._judged += 1
        plan = candidate.plan
        changes = changes_to(self._subject, self._current, plan, self._names)
        subject = self._subject.with_values({change.path: change.new for change in changes})
        if not self._acceptable(run_preflight(subject, self._core)):
            return None
        report = run_preflight(subject, self._checks)
        if not self._acceptable(report):
            return None
        new = [item for item in report.warnings if (item.id, item.path) not in self._warnings_before]
        left = [item for item in report.warnings if (item.id, item.path) in self._warnings_before]
        # Those of other areas that are there already say nothing against these numbers.
        warnings = len(new) + sum(self._area[item.id] in AREAS for item in left)
        cost = Cost.of(self._current, plan, self._names, remaining=len(report.errors), warnings=warnings)
        remaining, new_warnings, remaining_warnings = map(_ids, (report.errors, new, left))
        return _Passed(
            cost,
            warnings,
            candidate.warnings,
            Proposal(
                changes=changes,
                gpus=plan.gpus,
                reason=_reason(
                    cost.steps - len(report.errors), plan.gpus, remaining, new_warnings, remaining_warnings
                ),
                remaining=remaining,
                new_warnings=new_warnings,
                remaining_warnings=remaining_warnings,
                notes=(
                    *(f"{item.id} comes with it: {item.message}" for item in new),
                    *(
                        f"{item.id} remains: {item.message}"
                        for item in left
                        if item.message not in self._said_before
                    ),
                ),
                repair=repair_text(changes),
                role_plan=role_plan_text(subject, self._current, plan, changes),
            ),
        )

    def _acceptable(self, report: PreflightReport) -> bool:
        """Whether nothing is refused that the plan settles, nothing is newly refused, nothing newly unread."""
        return _unusable(report) <= self._unusable_before and all(
            (item.id, item.path) in self._errors_before and not _due(item, self._area[item.id], self._wanted)
            for item in report.errors
        )


def _unusable(report: PreflightReport) -> set[tuple[str, str]]:
    return {(item.id, item.needs) for item in report.not_checked if item.needs.startswith(UNUSABLE)}


def _ids(violations: Sequence[Violation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.id for item in violations))


def _has(plan: Plan, values: list[tuple[str, int]]) -> bool:
    return all(getattr(plan, name) == value for name, value in values)


def _best(passed: list[_Passed]) -> list[_Passed]:
    """The nearest, and one without warnings among them if there is any; those without come first."""
    nearest = sorted(passed, key=lambda item: item.cost)
    clean = [item for item in nearest if item.warnings == 0]
    best = nearest[:MOST_PROPOSALS]
    if clean and clean[0] not in best:
        best[-1] = clean[0]
    return sorted(best, key=lambda item: (item.warnings > 0, item.cost))


def _merged(parts: Iterator[dict[int, list[BatchOption]]]) -> dict[int, list[BatchOption]]:
    whole: dict[int, list[BatchOption]] = {}
    for part in parts:
        for steps, options in part.items():
            whole.setdefault(steps, []).extend(options)
    return whole


def _reason(
    changes: int,
    gpus: int,
    remaining: tuple[str, ...],
    new_warnings: tuple[str, ...],
    remaining_warnings: tuple[str, ...],
) -> str:
    text = f"{counted(changes, 'change')}, {counted(gpus, 'GPU')}"
    if new_warnings:
        text += f", with {_warnings(new_warnings)}"
    if remaining:
        text += f"; {listed(remaining)} {_remain(remaining)}"
    if remaining_warnings:
        text += f"; {_warnings(remaining_warnings)} {_remain(remaining_warnings)}"
    return text


def _warnings(ids: tuple[str, ...]) -> str:
    return f"{'warning' if len(ids) == 1 else 'warnings'} {listed(ids)}"


def _remain(ids: tuple[str, ...]) -> str:
    return "remains" if len(ids) == 1 else "remain"
