"""What preflight says."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Severity = Literal["error", "warning"]

UNUSABLE = "a usable value: "
"""Start of `NotChecked.needs` where the document has a value that the check cannot read."""

_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")


class Finding(BaseModel):
    """One breach of one check's rule, as the check yields it."""

    model_config = _FROZEN

    path: str
    """Field path in the launch document, such as `skyrl.trainer.train_batch_size`, or an artifact's address."""
    message: str
    """The value, the rule and the numbers, in one sentence or two."""
    repair: str
    """The smallest change which satisfies the rule, ready to type."""
    severity: Severity = "error"
    section: str | None = Field(default=None, exclude=True)
    """Path of a section that is not there as a whole, if an error says so: what other checks find in it is a mere
    consequence, and the engine leaves it out."""


class Violation(Finding):
    """A finding together with the id of its check."""

    id: str
    severity: Severity


class Reminder(BaseModel):
    """What no input can decide, such as free nodes: a line of the plan's checklist."""

    model_config = _FROZEN

    message: str
    """What to look at before the launch, with the numbers of this plan."""


class ChecklistLine(Reminder):
    """A reminder together with the id of its check."""

    id: str


class NotChecked(BaseModel):
    """A check which could not run."""

    model_config = _FROZEN

    id: str
    title: str
    needs: str
    """The missing fact, to be read after "not checked: needs "."""


class Change(BaseModel):
    """One setting that a proposal changes."""

    model_config = _FROZEN

    path: str
    """Field path in the launch document."""
    old: str
    """The present value as messages show it."""
    new: int | bool


class Proposal(BaseModel):
    """Other settings under which every rule of geometry and batches holds."""

    model_config = _FROZEN

    changes: tuple[Change, ...]
    gpus: int
    """GPUs of the allocation."""
    reason: str
    """What it costs in one line, such as "2 changes, 64 GPUs"."""
    remaining: tuple[str, ...]
    """Ids of the errors that it leaves, since no number of the plan settles them."""
    new_warnings: tuple[str, ...]
    """Ids of the warnings that come with it."""
    remaining_warnings: tuple[str, ...]
    """Ids of the warnings that it leaves."""
    notes: tuple[str, ...]
    """What its warnings say, where that is not what the report says already."""
    repair: str
    """The changes as one repair, ready to type."""
    role_plan: str
    """The whole plan, ready to paste: Python for an experiment, YAML for a bare document."""


class PreflightReport(BaseModel):
    """The outcome of all checks, in a fixed order (by id, then path)."""

    model_config = _FROZEN

    violations: tuple[Violation, ...]
    not_checked: tuple[NotChecked, ...]
    passed: tuple[str, ...]
    """Ids of the checks that ran and found nothing."""
    checklist: tuple[ChecklistLine, ...] = ()
    """What a person has to look at, since no input decides it."""
    proposals: tuple[Proposal, ...] = ()
    """The nearest legal settings, those without warnings first, where geometry or batches are refused."""
    no_proposal: str | None = None
    """Why a search for them found none."""

    @property
    def errors(self) -> tuple[Violation, ...]:
        """The violations that stop a build."""
        return tuple(violation for violation in self.violations if violation.severity == "error")

    @property
    def unusable(self) -> dict[str, tuple[str, ...]]:
        """What checks could not read in the document -> their ids. Normally an error says why."""
        needs: dict[str, tuple[str, ...]] = {}
        for item in self.not_checked:
            if item.needs.startswith(UNUSABLE):
                need = item.needs.removeprefix(UNUSABLE)
                needs[need] = (*needs.get(need, ()), item.id)
        return needs

    @property
    def warnings(self) -> tuple[Violation, ...]:
        """The violations that let a build pass."""
        return tuple(violation for violation in self.violations if violation.severity == "warning")
