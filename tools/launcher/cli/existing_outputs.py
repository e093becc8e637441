"""Looking, before anything is submitted, whether another plan's artifact has a step's output path."""

from tools.launcher.coordinator.artifact_record import ArtifactMismatch, read_record, reusable
from tools.launcher.coordinator.graph_file import read_graph, steps_up_to
from tools.launcher.store.objects import ObjectReader


def finished_steps(graph_json: bytes, stage: str, objects: ObjectReader) -> frozenset[str]:
    """Return `name@version` of the plan's steps that a coordinator would reuse and not make again.

    Args:
        graph_json, stage, objects: as `contradiction`, which found none.
    """
    steps = steps_up_to(read_graph(graph_json), stage)
    return frozenset(step.address for step in steps if reusable(step, read_record(objects, step)))


def contradiction(graph_json: bytes, stage: str, objects: ObjectReader) -> str | None:
    """Say which step of the plan would be stopped by what lies at its output path.

    The coordinator asks the same before each step; asked here, the answer costs no job.

    Args:
        graph_json: the bundle's graph.
        stage: the terminal stage.
        objects: holds the artifacts.

    Returns:
        a sentence with both fingerprints and the fix, None if nothing contradicts.
    """
    for step in steps_up_to(read_graph(graph_json), stage):
        try:
            reusable(step, read_record(objects, step))
        except ArtifactMismatch as mismatch:
            return str(mismatch)
    return None
