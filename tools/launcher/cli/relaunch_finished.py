"""Whether a new attempt would have anything to do."""

import os
import shlex

from tools.launcher.cli.existing_outputs import finished_steps
from tools.launcher.cli.experiment_files import ExperimentFiles
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.objects import ObjectReader
from tools.launcher.store.records import RunRecord, RunState
from tools.launcher.submit.gates.labels import verb_target
from tools.launcher.submit.relaunch import RelaunchRefused
from tools.launcher.submit.stage_steps import stages_of, steps_of_stage


class NotLookedFor(StoreError):
    """A run ended well, and nobody was asked whether what it made is still there. The message says what depends on it."""


def refuse_finished(
    newest: RunRecord,
    files: ExperimentFiles,
    place: LaunchPlace,
    stage: str,
    objects: ObjectReader | None,
) -> None:
    """Refuse a new attempt of a run that ended well, unless something that it made is gone.

    Its coordinator would find every step finished, reuse it and end: a job for nothing.

    Args:
        newest: the document's newest attempt.
        files: of the experiment.
        place: where a new attempt would go.
        stage: at which it would end.
        objects: holds the artifacts of the place; None if nobody shall be asked for them, or nobody can.

    Raises:
        RelaunchRefused: the run ended well, and all that it made is there.
        ArtifactMismatch: another plan's artifact lies where a step of this one would.
        NotLookedFor: the run ended well, and `objects` is None.
        StoreError: whether the artifacts are there was asked, and not answered: another call may get the answer.
    """
    if newest.state is not RunState.SUCCEEDED:
        return
    addresses = [step["address"] for step in steps_of_stage(files.bundle.graph_json, stage)]
    made = ", ".join(addresses)
    anew = _anew(files, stage)
    if objects is None:
        raise NotLookedFor(
            f"not known whether a relaunch would be refused: {_ended_well(newest, place)}. It would be if all that the "
            f"run made is still there, which was not looked for: {made}. A relaunch looks first, and goes on if "
            f"something is gone. {anew}"
        )
    if finished_steps(files.bundle.graph_json, stage, objects) < set(addresses):
        return
    raise RelaunchRefused(
        f"{_ended_well(newest, place)}. A new attempt would train nothing and reuse what is there: {made}. {anew}"
    )


def _ended_well(newest: RunRecord, place: LaunchPlace) -> str:
    ended = next(event for event in reversed(newest.events) if event.kind == "succeeded")
    return (
        f"{newest.key.short_name} ended well at {ended.at} as job {newest.coordinator_job_id}, "
        f"{_verified(newest, place)}"
    )


def _anew(files: ExperimentFiles, stage: str) -> str:
    """Say how to train again, and how to go on."""
    label = files.plan.experiment
    return (
        "To train anew, give the experiment a new `version` in its BUILD.bazel, then "
        f"tools/bazel run {verb_target(label, 'pin')} and {verb_target(label, 'launch')}{_later(files, stage)}"
    )


def _verified(record: RunRecord, place: LaunchPlace) -> str:
    if record.verification is not None:
        return "and is verified"
    named = shlex.join([record.key.short_name, *place.store_arguments(os.environ)])
    return f"and is not verified: `launcher verify {named}` says why"


def _later(files: ExperimentFiles, stage: str) -> str:
    """Say how to go on to a later stage of the graph, if it has one."""
    stages = list(stages_of(files.bundle.graph_json))
    later = stages[stages.index(stage) + 1 :]
    if not later:
        return ""
    launch = f"tools/bazel run {verb_target(files.plan.experiment, 'launch')}"
    return f". To go on from what it made: {launch} -- --stage={later[0]}"
