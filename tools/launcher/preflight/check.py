"""What a check is: one small function with the facts that document it."""

from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.preflight.findings import Finding, Reminder
from tools.launcher.preflight.subject import PreflightSubject

Area = Literal["artifacts", "geometry", "batches", "backend", "context", "objective", "execution", "document"]
CheckInput = Literal["spec", "model", "dataset", "cluster", "runtime", "ledger"]
Rule = Callable[[PreflightSubject], Iterator[Finding | Reminder]]


class Check(BaseModel):
    """A registered check. Its documentation page is made from these fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    id: str
    """Stable id of the catalogue, such as `GEO-07`. Never reused."""
    title: str
    area: Area
    rule: str
    """The rule as a formula or a sentence."""
    prevents: str
    """What goes wrong without the check."""
    inputs: tuple[CheckInput, ...]
    source: str
    """Where the rule or the failure was seen."""
    implied_by: tuple[str, ...] = ()
    """Ids whose error makes this check's findings a mere consequence; they are then left out."""
    run: Rule
    """Yields findings, and reminders for what no input decides. May raise MissingFact (a card lacks a fact) or UnreadableValue."""


def check(
    check_id: str,
    title: str,
    *,
    area: Area,
    rule: str,
    prevents: str,
    inputs: tuple[CheckInput, ...],
    source: str,
    implied_by: tuple[str, ...] = (),
) -> Callable[[Rule], Check]:
    """Decorate a rule function with the facts that document it. See `Check`."""

    def make(run: Rule) -> Check:
        return Check(
            id=check_id,
            title=title,
            area=area,
            rule=rule,
            prevents=prevents,
            inputs=inputs,
            source=source,
            implied_by=implied_by,
            run=run,
        )

    return make
