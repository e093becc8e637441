"""The chat template of the rollout."""

from collections.abc import Iterator
from difflib import get_close_matches

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_TEMPLATE = "skyrl.generator.chat_template"
_SOURCE = f"{_TEMPLATE}.source"
_NAME = f"{_TEMPLATE}.name_or_path"
_INPUT = "inputs.model.chat_template"


@check(
    "CTX-15",
    "the chat template exists",
    area="context",
    rule="chat_template.source is name or file; a name is one of the runtime's, a file is an absolute path; "
    "inputs.model.chat_template agrees; rollout and tokenizer have the same template",
    prevents="Rollout and training see different text, so the data are off-policy.",
    inputs=("spec", "model", "runtime"),
    source="catalogue CTX-15 (#88), MarinSkyRL skyrl_train/generators/utils.py@a559688c; nobody checks it",
)
def ctx_15(subject: PreflightSubject) -> Iterator[Finding]:
    sources = subject.manifest().recipe_enums.get("generator.chat_template.source", ("name", "file"))
    source, wanted, given = subject.get(_SOURCE), subject.get(_NAME), subject.get(_INPUT)
    if source is not None and source not in sources:
        yield Finding(
            path=_SOURCE,
            message=f"chat_template.source is {shown(source)}. Known: {listed(sources)}",
            repair=set_to(_SOURCE, *sources),
        )
        return
    if given and given != wanted:
        yield Finding(
            path=_INPUT,
            message=f"inputs.model.chat_template is {shown(given)}, the rollout uses "
            f"{shown(wanted) if wanted else 'the template of the tokenizer'}",
            repair=delete(_INPUT),
            severity="warning",
        )
    if not wanted:
        return
    wanted = subject.text(_NAME)
    if subject.text(_SOURCE) == "file":
        if not wanted.startswith("/"):
            yield Finding(
                path=_NAME,
                message=f"chat template file {shown(wanted)} is a relative path: the task runs in another folder",
                repair="write the absolute path of the file in the task's image",
                severity="warning",
            )
        raise MissingFact(f"the file {shown(wanted)} of the task's image, and the tokenizer's own template")
    yield from _name_problems(subject, wanted)
    raise MissingFact(f"the text of chat template {shown(wanted)}, and the tokenizer's own template")


def _name_problems(subject: PreflightSubject, wanted: str) -> Iterator[Finding]:
    known, complete = subject.manifest().chat_templates, subject.manifest().chat_templates_complete
    if known is None:
        raise MissingFact("chat_templates in the runtime manifest")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1) or known[:1]
        doubt = "" if complete else ", as far as is known"
        yield Finding(
            path=_NAME,
            message=f"chat template {shown(wanted)} does not exist{doubt}. Known: {listed(known)}",
            repair=set_to(_NAME, *near),
            severity="error" if complete else "warning",
        )


CHECKS = (ctx_15,)
