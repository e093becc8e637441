"""Words of the document that the launcher knows."""

import difflib
from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import known_values
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import listed, set_to, shown

_MODE = "run.mode"


@check(
    "EXE-08",
    "modes are those that the launcher knows",
    area="execution",
    rule="run.mode, run.submission, ingress.mode in their enumerations; checkpoint_export needs a resolved document",
    prevents="The launcher refuses it after the coordinator started.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-08 (#107), cases d09, d11; the launcher, late",
)
def exe_08(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.get(_MODE) == "checkpoint_export" and subject.source_form:
        yield Finding(
            path=_MODE,
            message="run.mode checkpoint_export needs a resolved document; this one is in source form",
            repair=set_to(_MODE, "train"),
        )
    for path in (_MODE, "run.submission", "ingress.mode"):
        value, known = subject.get(path), known_values(subject, path)
        if value is not None and value not in known:
            near = difflib.get_close_matches(value, known, n=1, cutoff=0.0) if isinstance(value, str) else []
            yield Finding(
                path=path,
                message=f"{path} {shown(value)} is unknown. Known: {listed(known)}",
                repair=set_to(
                    path, *dict.fromkeys(value for value in (*near, *known) if value != "checkpoint_export")
                ),
            )


CHECKS = (exe_08,)
