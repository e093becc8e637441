"""The model's export and its tokenizer."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.sources import is_hub_name, relative_path_problem
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import shown
from tools.launcher.rl.steps import ImportStepPayload, SkyRLStepPayload


@check(
    "ART-09",
    "the model has a Hugging Face export",
    area="artifacts",
    rule="relative_path is set to a path below the artifact, or the step that made the model exports one",
    prevents="The search inside the coordinator finds no export.",
    inputs=("spec", "model", "ledger"),
    source="catalogue ART-09 (#9); Marin, late",
)
def art_09(subject: PreflightSubject) -> Iterator[Finding]:
    for step in subject.origin().graph.steps:
        if not isinstance(step.payload, SkyRLStepPayload):
            continue
        model = step.payload.spec.model
        if model.relative_path is None:
            yield from _export_problems(step, model.step)
            continue
        problem = relative_path_problem(model.relative_path)
        if problem is not None and ".." not in model.relative_path:  # that one is ART-15's
            yield Finding(
                path="inputs.model.uri",
                message=f"relative_path of the model {problem}",
                repair="use a path below the artifact's root, such as hf/step-32",
            )


def _export_problems(step: ArtifactStep, origin: ArtifactStep) -> Iterator[Finding]:
    payload = origin.payload
    if isinstance(payload, SkyRLStepPayload) and not payload.export_hf:
        yield Finding(
            path=step.address,
            message=f"{origin.address} exports no Hugging Face model, and relative_path of the model is not set",
            repair=f"set export_hf=True in the step of {origin.address}",
        )
    elif isinstance(payload, ImportStepPayload):
        export = payload.card.export
        describes = export is not None and (export.name, export.version) == (origin.name, origin.version)
        if export is None or not describes or export.relative_path is None:
            yield Finding(
                path=step.address,
                message=f"{origin.address} has no known Hugging Face export: the card '{payload.card.name}' names none of it",
                repair="set relative_path of the model",
                severity="warning",
            )


@check(
    "ART-18",
    "the tokenizer fits the embedding",
    area="artifacts",
    rule="len(tokenizer) <= vocab_size",
    prevents="An index error, or embedding rows of other tokens.",
    inputs=("spec", "model"),
    source="catalogue ART-18 (new); nobody checks it",
)
def art_18(subject: PreflightSubject) -> Iterator[Finding]:
    embedded = subject.model_fact("vocab_size")
    tokenizer = subject.get("inputs.model.tokenizer_uri")
    known = subject.model.repository if subject.model is not None else None
    if known is not None and is_hub_name(tokenizer) and tokenizer != known:
        raise MissingFact(f"the size of the tokenizer {shown(tokenizer)}; the model card describes {known}")
    entries = subject.model_fact("tokenizer_size")
    if entries is None or embedded is None or entries <= embedded:
        return
    yield Finding(
        path="inputs.model.tokenizer_uri",
        message=f"tokenizer of {shown(tokenizer)} has {entries} entries, the model embeds {embedded}",
        repair="use the tokenizer published with the model",
    )


CHECKS = (art_09, art_18)
