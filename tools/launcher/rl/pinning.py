"""What the version ledger asks of an RL step."""

from typing import Any

from tools.launcher.documents.canonical import digest_of
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.ledger import RunIdentity
from tools.launcher.graph.step import ArtifactStep

FRESH = "none"
"""`trainer.resume_mode` of a run which never reads a checkpoint."""


def apart_from_runtime(run: ArtifactStep) -> str:
    """Return the fingerprint of an RL step without runtime commit, profile and resume mode.

    It stays when the runtime is repinned. So does it when the run is told to start afresh instead of going on
    from the old runtime's checkpoints, which is one of the two ways to repin under one version (ART-06).
    """
    config = {name: value for name, value in run.config.items() if name != "runtime"}
    trainer = config["recipe"].get("trainer")
    if isinstance(trainer, dict):
        kept = {name: value for name, value in trainer.items() if name != "resume_mode"}
        config["recipe"] = {**config["recipe"], "trainer": kept}
    return step_fingerprint(run.model_copy(update={"config": config}))


def run_identity(
    run: ArtifactStep, document: dict[str, Any], *, runtime: str, resume_mode: str
) -> RunIdentity:
    """Return what the ledger compares.

    Args:
        run: the RL step.
        document: its launch document, in source form.
        runtime: its commit.
        resume_mode: what the document says, or else the runtime's default.
    """
    return RunIdentity(
        recipe=step_fingerprint(run),
        apart_from_runtime=apart_from_runtime(run),
        document=document_recipe(document),
        runtime=runtime,
        launch=digest_of(document),
        starts_fresh=resume_mode == FRESH,
    )


def earlier_fingerprints(step: ArtifactStep, run: ArtifactStep, recipes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fingerprints that `step` would have if `run` had each of `recipes`.

    Those of the run itself are `recipes`. A step that reads its output moves with each of them, so an allowed
    repin of the run moves the steps behind it as well.
    """
    if step == run or not recipes:
        return recipes
    now = step_fingerprint(step)
    moved = (step_fingerprint(_with_recipe(step, run, recipe)) for recipe in recipes)
    return tuple(dict.fromkeys(fingerprint for fingerprint in moved if fingerprint != now))


def _with_recipe(step: ArtifactStep, run: ArtifactStep, recipe: str) -> ArtifactStep:
    if step == run:
        return step.model_copy(update={"recorded_fingerprint": recipe})
    return step.model_copy(update={"deps": tuple(_with_recipe(dep, run, recipe) for dep in step.deps)})
