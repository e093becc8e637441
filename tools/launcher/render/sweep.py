"""A sweep as data: its points with what their plans say, and which of them would be one run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.render.detail import NoDetail, detail_of
from tools.launcher.render.plan import LaunchPlan

SCHEMA = 1
_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")
_RL_KIND = "skyrl"
_WINDOW = "generator.engine_init_kwargs.max_model_len"
_MAX_STEPS = "trainer.max_steps"
_SHOWN_DIGITS = 12


class PointUnreadable(ValueError):
    """A plan or graph is not of this launcher's making. The message says why."""


class PointFiles(BaseModel):
    """The files of a point, as paths in the runfiles of a verb."""

    model_config = _FROZEN

    digest: str
    graph: str
    launch: str
    plan: str


class SweepPoint(BaseModel):
    """One point.

    Attributes:
        point: its short name.
        label: its experiment, `//package:name`.
        values: axis -> value, as BUILD.bazel gives it.
        files: of its experiment.
        stage: default terminal stage.
        artifact: `name@version` of what it trains.
        recipe, launch: its digests, 64 hex digits.
        nodes, gpus_per_node, gpu_variant: the allocation.
        steps: training steps, None if the data decides.
        tokens_per_step: at most: answers of a step, each as long as the request window, as `diff` counts.
        gpu_hours: taken at most: the allocation until its deadline.
    """

    model_config = _FROZEN

    point: str
    label: str
    values: dict[str, str]
    files: PointFiles
    stage: str
    artifact: str
    recipe: str
    launch: str
    nodes: int
    gpus_per_node: int
    gpu_variant: str
    steps: int | None
    tokens_per_step: int
    gpu_hours: float


class Sweep(BaseModel):
    """`<name>.sweep.json`."""

    model_config = _FROZEN

    schema_version: Literal[1] = Field(default=1, alias="schema")
    sweep: str
    """Its label."""
    points: tuple[SweepPoint, ...] = Field(min_length=1)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes, in the order of BUILD.bazel."""
        return tuple(self.points[0].values)


def dump_sweep(sweep: Sweep) -> bytes:
    """Return the bytes of the file."""
    return (json.dumps(sweep.model_dump(mode="json", by_alias=True), indent=1) + "\n").encode()


def load_sweep(data: bytes) -> Sweep:
    """Read the file.

    Raises:
        PointUnreadable: it is not one.
    """
    try:
        return Sweep.model_validate_json(data)
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"])
        raise PointUnreadable(f"{place + ': ' if place else ''}{finding['msg']}") from None


def point_of(
    point: str, label: str, values: Mapping[str, str], files: PointFiles, plan_json: bytes
) -> SweepPoint:
    """Return a point from what its plan says; nothing is worked out anew.

    Raises:
        PointUnreadable: the plan is not of this launcher.
    """
    try:
        plan = LaunchPlan.model_validate_json(plan_json)
        detail = detail_of(plan)
    except ValidationError as error:
        raise PointUnreadable(
            f"the plan of {label} does not read as one: {error.errors()[0]['msg']}"
        ) from None
    except NoDetail as error:
        raise PointUnreadable(f"the plan of {label}: {error}") from None
    nodes, gpus = int(plan.allocation["num_nodes"]), int(plan.allocation["gpus_per_node"])
    (trained,) = (item for item in plan.artifacts if item.kind == _RL_KIND)
    wanted = next((item.value for item in detail.settings if item.path == _MAX_STEPS), None)
    return SweepPoint(
        point=point,
        label=label,
        values=dict(values),
        files=files,
        stage=plan.terminal_stage,
        artifact=trained.identity.rpartition(":")[0],
        recipe=plan.digests.recipe,
        launch=plan.digests.launch,
        nodes=nodes,
        gpus_per_node=gpus,
        gpu_variant=str(plan.allocation["gpu_variant"]),
        # Zero and less is no limit (preflight/schedule.py).
        steps=wanted if isinstance(wanted, int) and wanted > 0 else None,
        tokens_per_step=plan.batches.prompts_per_step
        * plan.batches.samples_per_prompt
        * plan.lengths[_WINDOW],
        gpu_hours=nodes * gpus * detail.deadline.seconds / 3600,
    )


def sweep_problems(points: Sequence[SweepPoint], graphs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say which points would be one run, or stand in each other's way, each with the fix.

    Args:
        points: of the sweep.
        graphs: label -> graph document.
    """
    return [*_same_recipe(points), *_same_address(points, graphs)]


def _same_recipe(points: Sequence[SweepPoint]) -> Iterable[str]:
    first: dict[str, SweepPoint] = {}
    for point in points:
        other = first.setdefault(point.recipe, point)
        if other is not point:
            yield (
                f"the points {other.point} and {point.point} have one recipe, "
                f"sha256:{point.recipe[:_SHOWN_DIGITS]}: {_differing(other, point)} changes nothing that is learned. "
                "Use it in main(), or take it out of axes"
            )


def _same_address(points: Sequence[SweepPoint], graphs: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    first: dict[str, tuple[SweepPoint, str]] = {}
    told: set[str] = set()
    for point in points:
        for step in graphs[point.label]["steps"]:
            address, fingerprint = step["address"], step["fingerprint"]
            other, others = first.setdefault(address, (point, fingerprint))
            # Of many points the first two tell enough; equal recipes have a sentence of their own.
            if others == fingerprint or address in told or other.recipe == point.recipe:
                continue
            told.add(address)
            axis = next(axis for axis in point.values if point.values[axis] != other.values[axis])
            yield (
                f"the points {other.point} and {point.point} would both write {address}, with the fingerprints "
                f"{others[:_SHOWN_DIGITS]} and {fingerprint[:_SHOWN_DIGITS]}: {_differing(other, point)} is not in "
                f'that name. Put every axis into it in main(), such as name=f"team/run-{{{axis}}}"'
            )


def _differing(one: SweepPoint, other: SweepPoint) -> str:
    """The axes in which two points differ, with both values."""
    return ", ".join(
        f"{axis} ({value}, {other.values[axis]})"
        for axis, value in one.values.items()
        if value != other.values[axis]
    )
