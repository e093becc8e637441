"""The sizes of one launch document, each read by itself: one that cannot be read silences no other."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.teachers import teacher_nodes

Size = int | str | bool


class Sizes(BaseModel):
    """What was read, by name, and why the rest was not.

    Attributes:
        known: name of `SIZES` -> value.
        unknown: name -> what it needs, such as `a runtime manifest`.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    known: dict[str, Size]
    unknown: dict[str, str]

    def get(self, name: str) -> Size | None:
        """Return a size, None if it is not known."""
        return self.known.get(name)


def sizes_of(subject: PreflightSubject) -> Sizes:
    """Measure the document of `subject`; what it leaves out has the value of its runtime manifest."""
    known: dict[str, Size] = {}
    unknown: dict[str, str] = {}
    for name, read in SIZES.items():
        try:
            known[name] = read(Geometry.of(subject), subject)
        except (UnreadableValue, MissingFact) as missing:
            unknown[name] = str(missing)
    return Sizes(known=known, unknown=unknown)


SHARED, OWN_NODES, ELSEWHERE = "shared", "own nodes", "elsewhere"
"""Where a role is: on the policy's GPUs, on nodes of its own, outside of the job."""


def _engines_at(geometry: Geometry) -> str:
    if not geometry.engines_local:
        return ELSEWHERE
    return SHARED if geometry.colocate_all else OWN_NODES


def _layout(geometry: Geometry) -> str:
    """How the policy's ranks are cut, as the plan writes it."""
    return (
        f"{geometry.strategy}, model parallel {geometry.model_parallel('policy')}, "
        f"data parallel {geometry.policy_dp}"
    )


def _training_split(geometry: Geometry, subject: PreflightSubject) -> str:
    """Everything that says which part of policy and optimizer a rank holds, as one comparable text."""
    sections = [subject.get(f"skyrl.trainer.policy.{name}_config") for name in ("megatron", "fsdp")]
    sizes = {
        key: value
        for section in sections
        if isinstance(section, dict)
        for key, value in section.items()
        if key.endswith("_size")
    }
    split = (geometry.strategy, geometry.policy_world, geometry.model_parallel("policy"))
    return f"{split} {sorted(sizes.items())}"


SIZES: dict[str, Callable[[Geometry, PreflightSubject], Any]] = {
    "nodes": lambda geometry, _: geometry.num_nodes,
    "gpus_per_node": lambda geometry, _: geometry.gpus_per_node,
    "gpu_variant": lambda _, subject: subject.text("iris.allocation.gpu_variant"),
    "gpus": lambda geometry, _: geometry.num_nodes * geometry.gpus_per_node,
    "used_gpus": lambda geometry, _: geometry.planned_gpus,
    "engines": lambda geometry, _: geometry.engines,
    "engine_gpus": lambda geometry, _: geometry.engine_gpus,
    "engine_tp": lambda geometry, _: geometry.engine_tp,
    "engine_pp": lambda geometry, _: geometry.engine_pp,
    "engine_dp": lambda geometry, _: geometry.engine_dp,
    "engine_ep": lambda geometry, _: geometry.engine_ep,
    "engine_nodes": lambda geometry, _: geometry.rollout_nodes,
    "engines_at": lambda geometry, _: _engines_at(geometry),
    "policy_ranks": lambda geometry, _: geometry.policy_world,
    "policy_layout": lambda geometry, _: _layout(geometry),
    "policy_split": _training_split,
    "reference_ranks": lambda geometry, _: geometry.reference_world if geometry.reference_active else 0,
    "reference_at": lambda geometry, _: OWN_NODES if geometry.reference_separate else SHARED,
    "engine_ranks": lambda geometry, _: geometry.rollout_gpus,
    "draft_gpus": lambda geometry, _: geometry.draft_training_nodes * geometry.policy_gpus_per_node,
    "teacher_gpus": lambda geometry, subject: teacher_nodes(subject) * geometry.policy_gpus_per_node,
    "prompts_per_step": lambda geometry, _: geometry.train_batch,
    "samples_per_prompt": lambda geometry, _: geometry.declared_samples,
    "answers_per_step": lambda geometry, _: geometry.train_batch * geometry.declared_samples,
    "rows_per_step": lambda geometry, _: geometry.train_batch * geometry.samples,
    "window_tokens": lambda _, subject: subject.positive("skyrl.context_budget.request_window_tokens"),
    "tokens_per_step_at_most": lambda geometry, subject: (
        geometry.train_batch
        * geometry.declared_samples
        * subject.positive("skyrl.context_budget.request_window_tokens")
    ),
    "optimizer_steps": lambda geometry, subject: (
        geometry.train_batch
        // geometry.mini_batch
        * subject.positive("skyrl.trainer.update_epochs_per_batch")
    ),
    "rows_per_rank": lambda geometry, _: geometry.rows_per_rank,
    "micro_steps": lambda geometry, _: geometry.rows_per_rank // geometry.micro_batch,
}
"""Name -> how it is read. Counts are in GPUs, ranks, prompts, rows or tokens, as the name says."""
