"""Walking the graph: reuse what is finished, make what is missing, record every change.

The walk holds no state of its own. What is finished stands in the artifacts' records, what happened
in the run record, and ids follow from the launch digest: a coordinator that is killed at any point
and started again goes on where the last one was.
"""

from typing import Any

from tools.launcher.coordinator.artifact_record import read_record, reusable
from tools.launcher.coordinator.attempt import Attempt
from tools.launcher.coordinator.children import Child
from tools.launcher.coordinator.commands import CommandProblem, Completed, run_command
from tools.launcher.coordinator.graph_file import GraphStep
from tools.launcher.coordinator.runtime import NoMaker
from tools.launcher.coordinator.training import Site, StepFailed, mark_earlier_success, train
from tools.launcher.store.objects import Objects


def walk(steps: tuple[GraphStep, ...], attempt: Attempt, site: Site, child: Child) -> None:
    """Bring every step to its end, in order.

    Args:
        steps: in an order in which each comes after what it reads.
        attempt: of the RL step.
        site: where it works.
        child: of the attempt.

    Raises:
        StepFailed: one step failed; the ones before it are finished.
        ArtifactMismatch, NoMaker, StoreError, IrisError: likewise.
    """
    by_address = {step.address: step for step in steps}
    for step in steps:
        found = read_record(site.objects, step)
        if found is None and step.kind == "skyrl":
            mark_earlier_success(step, attempt, site.objects)
            found = read_record(site.objects, step)
        if reusable(step, found):
            site.record(
                "step_reused",
                {"step": step.address, "identity": step.identity, "output_path": step.output_path},
            )
            continue
        site.record(
            "step_started", {"step": step.address, "kind": step.kind, "output_path": step.output_path}
        )
        if step.kind == "skyrl":
            facts = train(step, attempt, site, child)
        elif step.kind == "evaluate":
            export = _export_of(step, by_address, site.objects)
            facts = _make(step, site.runtime.evaluate(step, export), site.objects)
        else:
            command = site.runtime.import_artifact(step, attempt.tokenizer_uri, attempt.tokenizer_revision)
            facts = _make(step, command, site.objects)
        site.record("step_finished", {"step": step.address, "identity": step.identity, **facts})


def _make(step: GraphStep, command: tuple[str, ...], objects: Objects) -> dict[str, Any]:
    try:
        done = run_command(command, tick=lambda: None)
    except CommandProblem as problem:
        raise StepFailed(step, str(problem)) from None
    said = {"exit_code": done.exit_code, "stderr_tail": done.stderr_tail}
    if done.exit_code != 0:
        raise StepFailed(step, f"{_last_line(done)} (exit code {done.exit_code})", **said)
    if not reusable(step, read_record(objects, step)):
        raise StepFailed(step, f"its maker ended well and left no record at {step.output_path}", **said)
    return {"output_path": step.output_path}


def _export_of(step: GraphStep, by_address: dict[str, GraphStep], objects: Objects) -> str:
    for address in step.deps:
        dep = by_address[address]
        if dep.kind == "skyrl":
            made = read_record(objects, dep)
            if made is not None and made.export is not None:
                return made.export
    raise NoMaker(
        f"step {step.address} evaluates an exported policy and none of its inputs has one. "
        "Train with run.export_hf: true"
    )


def _last_line(done: Completed) -> str:
    lines = [line for line in done.stderr_tail.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "the maker said nothing"
