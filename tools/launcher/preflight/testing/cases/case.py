"""One row of a table: a changed example, and what one check says about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.preflight.findings import Severity
from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime


@dataclass(frozen=True, kw_only=True)
class _Case:
    check: str
    """Id of the check."""
    base: str = "smoke"
    """`smoke` or `moe`."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Path -> new value."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Cards by their name in PreflightSubject."""
    runtime: Callable[[], RuntimeManifest | None] = pinned_runtime
    planned: Callable[[], PlannedFrom] | None = None

    def subject(self) -> PreflightSubject:
        """Return what the row describes."""
        return PreflightSubject(
            document=changed(document(self.base), self.changes),
            runtime=self.runtime(),
            planned=self.planned() if self.planned is not None else None,
            **self.facts,
        )


@dataclass(frozen=True, kw_only=True)
class Fails(_Case):
    """The check finds something, and says `says`."""

    says: str
    at: str | None = None
    """Path of the finding, where the message alone does not tell."""
    severity: Severity = "error"


@dataclass(frozen=True, kw_only=True)
class Passes(_Case):
    """The check runs and finds nothing."""


@dataclass(frozen=True, kw_only=True)
class Reminds(_Case):
    """The check finds nothing, and adds the line `says` to the checklist."""

    says: str


@dataclass(frozen=True, kw_only=True)
class NotChecked(_Case):
    """The check cannot run, or not to its end, and needs `needs`."""

    needs: str
