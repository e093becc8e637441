"""What a terminal stage means at a place: what nobody makes there, and what is only looked for."""

from tools.launcher.cli.experiment_files import ExperimentFiles
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_problems import NoSuchStage, StageRefused
from tools.launcher.coordinator.runtime import MADE_BY
from tools.launcher.graph.stages import other_stages
from tools.launcher.graph.step import STAGE_OF_KIND
from tools.launcher.submit.gates.labels import verb_target
from tools.launcher.submit.stage_steps import RL_KIND, stages_of, steps_of_stage


def require_stage(files: ExperimentFiles, stage: str) -> None:
    """Check that the graph has a stage.

    Raises:
        NoSuchStage: it does not; the message lists those it has.
        LaunchMismatch: the graph cannot be read.
    """
    ends = stages_of(files.bundle.graph_json)
    if stage not in ends:
        raise NoSuchStage(f"--stage={stage} does not end this graph. {other_stages(stage, ends)}")


def trains(files: ExperimentFiles, stage: str) -> bool:
    """Tell whether a walk to `stage` trains, and so takes GPUs."""
    return any(step["kind"] == RL_KIND for step in steps_of_stage(files.bundle.graph_json, stage))


def refuse_unmade(files: ExperimentFiles, place: LaunchPlace, stage: str) -> None:
    """Refuse a launch whose coordinator would stop at a step that nobody makes there.

    Imports are left to the coordinator: where its runtime makes none, they have to be there, and it looks.

    Raises:
        StageRefused: there is such a step.
        LaunchMismatch: the graph cannot be read.
    """
    for step in steps_of_stage(files.bundle.graph_json, stage):
        kind = step["kind"]
        if STAGE_OF_KIND[kind] == "import" or step["adopted"] or kind in MADE_BY[place.runtime]:
            continue
        label = files.plan.experiment
        raise StageRefused(
            f"{label}: stage {stage} on the cluster {place.cluster} needs {step['address']}, of the kind "
            f"{kind}, and the MarinSkyRL launcher, which works there, makes {_listed(place)} only. Nothing "
            f"was submitted. Launch up to the training: tools/bazel run {verb_target(label, 'launch')} -- "
            f"--stage=rl; a stand-in of all of it: tools/bazel run {verb_target(label, 'rehearse')} -- "
            f"--stage={stage}"
        )


def looked_for_only(files: ExperimentFiles, place: LaunchPlace, stage: str) -> str:
    """Return a line that says of the stage `import` what becomes of it where nobody imports, "" elsewhere."""
    steps = steps_of_stage(files.bundle.graph_json, stage)
    if stage != "import" or all(step["kind"] in MADE_BY[place.runtime] for step in steps):
        return ""
    return (
        f"stage import on {place.cluster}: nothing is imported there. The coordinator looks whether "
        f"{', '.join(step['address'] for step in steps)} exist and are the plan's, and fails at the first that is not\n"
    )


def _listed(place: LaunchPlace) -> str:
    return ", ".join(sorted(MADE_BY[place.runtime]))
