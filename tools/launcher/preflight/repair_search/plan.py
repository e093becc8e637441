"""The settings that a search moves, and where a launch document keeps them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from tools.launcher.preflight.findings import Change
from tools.launcher.preflight.subject import (
    MAX_COUNT,
    PreflightSubject,
    UnreadableValue,
    is_count,
    launcher_reads,
    readable_count,
)
from tools.launcher.preflight.wording import shown


class Plan(NamedTuple):
    """One value for every setting: role plan, allocation, and the two recipe values that follow batches."""

    num_nodes: int
    gpus_per_node: int
    colocate_all: bool
    colocate_policy_ref: bool
    policy_nodes: int
    policy_width: int
    reference_nodes: int
    reference_width: int
    engines: int
    tp: int
    pp: int
    dp: int
    ep: int
    train: int
    mini: int
    micro: int
    samples: int
    forward: int
    """micro_forward_batch_size_per_gpu; Megatron wants it equal to `micro` (BAT-08)."""
    workers: int
    """num_parallel_generation_workers of fully_async; at least `mini` (BAT-18)."""

    def having(self, values: Mapping[str, Any]) -> Self:
        """Return the plan with other `values` of the settings that they name."""
        return self._replace(**values)

    @property
    def gpus(self) -> int:
        """GPUs of the allocation."""
        return self.num_nodes * self.gpus_per_node


_PLACEMENT = "skyrl.trainer.placement."
_ENGINE = "skyrl.generator.inference_engine_"

PATHS = {
    "num_nodes": "iris.allocation.num_nodes",
    "gpus_per_node": "iris.allocation.gpus_per_node",
    "colocate_all": _PLACEMENT + "colocate_all",
    "colocate_policy_ref": _PLACEMENT + "colocate_policy_ref",
    "policy_nodes": _PLACEMENT + "policy_num_nodes",
    "policy_width": _PLACEMENT + "policy_num_gpus_per_node",
    "reference_nodes": _PLACEMENT + "ref_num_nodes",
    "reference_width": _PLACEMENT + "ref_num_gpus_per_node",
    "engines": "skyrl.generator.num_inference_engines",
    "tp": _ENGINE + "tensor_parallel_size",
    "pp": _ENGINE + "pipeline_parallel_size",
    "dp": _ENGINE + "data_parallel_size",
    "ep": _ENGINE + "expert_parallel_size",
    "train": "skyrl.trainer.train_batch_size",
    "mini": "skyrl.trainer.policy_mini_batch_size",
    "micro": "skyrl.trainer.micro_train_batch_size_per_gpu",
    "samples": "skyrl.generator.n_samples_per_prompt",
    "forward": "skyrl.trainer.micro_forward_batch_size_per_gpu",
    "workers": "skyrl.trainer.fully_async.num_parallel_generation_workers",
}
"""Setting -> its path in a launch document, in the order in which changes are shown."""

RECIPE = ("forward", "workers")
"""Settings that a recipe holds, not the role plan."""

SWITCHES = ("colocate_all", "colocate_policy_ref")
PLACEMENT_SETTINGS = tuple(PATHS)[:13]
"""Nodes, widths and engines."""
BATCH_SETTINGS = tuple(PATHS)[13:]

_ALLOCATION = ("num_nodes", "gpus_per_node")
_SECTIONS = (
    "iris",
    "iris.allocation",
    "skyrl",
    "skyrl.trainer",
    "skyrl.trainer.placement",
    "skyrl.generator",
)
_ABSENT = object()
_NO_COUNT = 1
"""Stands for a value that says nothing, such as 0 or a list, where a distance to it is needed."""


class Current(NamedTuple):
    """What the document holds now."""

    plan: Plan
    """Its values; where one is unusable, the count that it comes nearest to."""
    unusable: frozenset[str]
    """Settings whose value no check can use, so that any proposal writes them."""
    absent: frozenset[str]
    """Settings that the document leaves to a default."""
    filled: bool
    """Whether the launcher fills what is absent from the allocation (source form)."""

    def default(self, name: str, plan: Plan) -> int | bool:
        """Return what an absent setting becomes under `plan`.

        Source: MarinSkyRL cloud/iris/rl_config_translation.py@00ee4e42, as `Geometry` reads it.
        """
        if self.filled and name in ("policy_nodes", "reference_nodes"):
            return plan.num_nodes
        if self.filled and name in ("policy_width", "reference_width"):
            return plan.gpus_per_node
        if self.filled and name == "engines":
            # A TP that is left out too counts as 1 here.
            divisor = plan.tp if "tp" not in self.absent or self.moved("tp", plan) else 1
            return max(1, plan.gpus // divisor)
        value: int | bool = getattr(self.plan, name)
        return value

    def moved(self, name: str, plan: Plan) -> bool:
        """Whether `plan` asks for another value of `name` than the document gives it."""
        if name in self.unusable:
            return True
        wanted = getattr(plan, name)
        if name in self.absent:
            return bool(self.default(name, plan) != wanted)
        return bool(getattr(self.plan, name) != wanted)


def read_current(subject: PreflightSubject, names: tuple[str, ...]) -> Current:
    """Return what the document holds for `names`; other settings read as 1 and never move.

    Raises:
        UnreadableValue: a section is no mapping, or a switch is no boolean.
        MissingFact: a value is left out, and there is no runtime manifest to ask.
    """
    for section in _SECTIONS:
        if subject.declares(section) and not isinstance(subject.get(section), dict):
            raise UnreadableValue(f"{section} as a mapping, it is {shown(subject.get(section))}")
    values: dict[str, Any] = dict.fromkeys(Plan._fields, _NO_COUNT)
    unusable, absent = set(), set()
    for name in (name for name in Plan._fields if name in names):
        path = PATHS[name]
        if name in SWITCHES:
            values[name] = subject.flag(path)
            if not subject.has(path):
                absent.add(name)
        elif subject.has(path):
            raw = subject.get(path)
            readable = launcher_reads(raw) if name in _ALLOCATION else (raw if is_count(raw) else None)
            if readable is None:
                unusable.add(name)
            values[name] = _nearest_count(raw)
        elif subject.source_form and name in _FILLED:
            absent.add(name)
        else:
            try:
                values[name] = subject.positive(path)
                absent.add(name)
            except UnreadableValue:
                unusable.add(name)
    current = Current(Plan(**values), frozenset(unusable), frozenset(absent), filled=subject.source_form)
    for name in _FILLED:
        if name in absent:
            current = current._replace(plan=current.plan.having({name: current.default(name, current.plan)}))
    return current


_FILLED = ("policy_nodes", "policy_width", "reference_nodes", "reference_width", "engines")
"""What the launcher fills from the allocation where a document in source form leaves it out."""


def _nearest_count(raw: Any) -> int:
    """The count that an author most likely meant: the text's number, without sign and fraction."""
    meant = readable_count(raw)
    if meant is not None:
        return meant
    if type(raw) is int:
        return min(max(abs(raw), _NO_COUNT), MAX_COUNT)
    if type(raw) is float and abs(raw) <= MAX_COUNT:
        return max(round(abs(raw)), _NO_COUNT)
    return _NO_COUNT


def changes_to(
    subject: PreflightSubject, current: Current, plan: Plan, names: tuple[str, ...]
) -> tuple[Change, ...]:
    """Return what has to be written into the document for `plan`, in the order of `PATHS`."""
    return tuple(
        Change(path=path, old=shown(subject.get(path)), new=getattr(plan, name))
        for name, path in PATHS.items()
        if name in names and current.moved(name, plan)
    )
