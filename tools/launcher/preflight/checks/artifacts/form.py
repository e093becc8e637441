"""Source form and resolved form of a launch document."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject


@check(
    "ART-16",
    "a source document has a context budget",
    area="artifacts",
    rule="runtime.entrypoint is empty, or skyrl.config_groups is there, only with skyrl.context_budget",
    prevents="The launcher takes the document for a resolved one and complains about module ''.",
    inputs=("spec",),
    source="catalogue ART-16 (new); the launcher, with a misleading text",
)
def art_16(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.source_form and not subject.declares("skyrl.context_budget"):
        empty = subject.get("runtime.entrypoint") in (None, "")
        why = "runtime.entrypoint is empty" if empty else "it has skyrl.config_groups"
        yield Finding(
            path="skyrl.context_budget",
            message=f"skyrl.context_budget is missing from a source document ({why})",
            repair="declare request_window_tokens, max_new_tokens_per_turn and max_turns",
        )


CHECKS = (art_16,)
