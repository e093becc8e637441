"""What an entry point asks of the recipe, and values which the launcher owns."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.declared import declaration
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import set_to, shown

_TEMPLATE = "skyrl.generator.chat_template.name_or_path"
_MULTI_TURN = "skyrl.generator.use_conversation_multi_turn"


@check(
    "OBJ-13",
    "the recipe leaves the launcher's values alone",
    area="objective",
    rule="no path is set that the launcher overwrites; data.val_data is a warning where inputs.validation_data is empty, "
    "since it stays then",
    prevents="The value is replaced silently, yet it changes the fingerprint.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-13 (new), contract launch-document.md §2; nobody checks it",
)
def obj_13(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    for path, owner in sorted(subject.manifest().launcher_owned.items()):
        found = declaration(subject, path)
        if found is None or found.value is None:  # null is skipped by the launcher
            continue
        if path == "data.val_data" and not subject.get(owner):
            yield Finding(
                path=f"skyrl.{path}",
                message=f"{found.where}{path}={found.written} stays, since {owner} is empty; nothing brings these files "
                "to the nodes",
                repair=found.repair,
                severity="warning",
            )
        else:
            yield Finding(
                path=f"skyrl.{path}",
                message=f"{found.where}{path}={found.written}: the launcher sets it from {owner}",
                repair=found.repair,
            )


@check(
    "OBJ-14",
    "fully_async has GPUs, engines and a chat template of its own",
    area="objective",
    rule="entry point fully_async: colocate_all false, async_engine true, batched false, enable_http_endpoint true, "
    "chat_template.name_or_path set; a warning where use_conversation_multi_turn is false",
    prevents="Every build-time stage accepts a colocated fully_async run; the trainer asserts.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-14 (new), contract runtime-facts.md §1; the trainer",
)
def obj_14(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.entrypoint != "fully_async":
        return
    for path, wanted, why in (
        ("trainer.placement.colocate_all", False, "cannot share GPUs with the engines; add rollout nodes"),
        ("generator.async_engine", True, "needs the asynchronous engine"),
        ("generator.batched", False, "generates answer by answer"),
        ("generator.enable_http_endpoint", True, "talks to the engines over HTTP"),
    ):
        if subject.flag(f"skyrl.{path}") is not wanted:
            yield Finding(
                path=f"skyrl.{path}",
                message=f"fully_async {why}: {path.rpartition('.')[2]} is {shown(not wanted)}",
                repair=set_to(f"skyrl.{path}", wanted),
            )
    if subject.get(_MULTI_TURN) is False and not subject.source_form:  # CTX-16
        yield Finding(
            path=_MULTI_TURN,
            message="fully_async talks in turns: use_conversation_multi_turn is false",
            repair=set_to(_MULTI_TURN, True),
            severity="warning",
        )
    if not subject.get(_TEMPLATE):
        yield Finding(
            path=_TEMPLATE,
            message="fully_async needs chat_template.name_or_path, which is not set",
            repair="name the chat template of the tokenizer",
        )


CHECKS = (obj_13, obj_14)
