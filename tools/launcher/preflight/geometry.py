"""Role arithmetic on a launch document.

Every number is read when it is asked for, so one bad value silences only the checks that need
it. Source of the formulas: contract, typed-spec.md §4.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject, UnreadableValue
from tools.launcher.preflight.teachers import teacher_nodes

_PLACEMENT = "skyrl.trainer.placement."
_ENGINE = "skyrl.generator.inference_engine_"


class Geometry:
    """Sizes of roles, engines and batches. Each property raises like `PreflightSubject.value`."""

    def __init__(self, subject: PreflightSubject) -> None:
        self._subject = subject

    @classmethod
    def of(cls, subject: PreflightSubject) -> "Geometry":
        """Return the geometry of `subject`, the same one for every check."""
        geometry: Geometry | None = subject.derived.get(cls.__name__)
        if geometry is None:
            geometry = subject.derived[cls.__name__] = cls(subject)
        return geometry

    # --- allocation and roles ---------------------------------------------------------------

    @cached_property
    def num_nodes(self) -> int:
        """Nodes of the allocation."""
        return self._subject.launcher_count("iris.allocation.num_nodes")

    @cached_property
    def gpus_per_node(self) -> int:
        """g: GPUs per node of the allocation."""
        return self._subject.launcher_count("iris.allocation.gpus_per_node")

    @cached_property
    def colocate_all(self) -> bool:
        return self._subject.flag(_PLACEMENT + "colocate_all")

    @cached_property
    def colocate_policy_ref(self) -> bool:
        return self._subject.flag(_PLACEMENT + "colocate_policy_ref")

    @cached_property
    def export_mode(self) -> bool:
        """Whether only the policy is placed, to export a checkpoint."""
        return bool(self._subject.get("run.mode") == "checkpoint_export")

    @cached_property
    def policy_nodes(self) -> int:
        return self._placed("policy_num_nodes", "num_nodes")

    @cached_property
    def policy_gpus_per_node(self) -> int:
        return self._placed("policy_num_gpus_per_node", "gpus_per_node")

    @cached_property
    def reference_nodes(self) -> int:
        return self._placed("ref_num_nodes", "num_nodes")

    @cached_property
    def reference_gpus_per_node(self) -> int:
        return self._placed("ref_num_gpus_per_node", "gpus_per_node")

    @cached_property
    def policy_world(self) -> int:
        """W: GPUs of the policy."""
        return self.policy_nodes * self.policy_gpus_per_node

    @cached_property
    def reference_world(self) -> int:
        """GPUs of the reference; a colocated one has the policy's."""
        if self.colocate_all or self.colocate_policy_ref:
            return self.policy_world
        return self.reference_nodes * self.reference_gpus_per_node

    @cached_property
    def reference_active(self) -> bool:
        """A reference exists only if a KL term needs it."""
        return self._subject.flag("skyrl.trainer.algorithm.use_kl_loss") or self._subject.flag(
            "skyrl.trainer.algorithm.use_kl_in_reward"
        )

    @cached_property
    def reference_separate(self) -> bool:
        """Whether an active reference occupies nodes of its own."""
        return self.reference_active and not self.colocate_all and not self.colocate_policy_ref

    # --- rollout engines ----------------------------------------------------------------------

    @cached_property
    def engines(self) -> int:
        """E: replicas of the rollout engine.

        Where it is left out, the launcher takes all GPUs // the recipe's TP. For that quotient a TP that
        is left out too counts as 1, although engines then have the base configuration's.

        Source: MarinSkyRL cloud/iris/rl_config_translation.py@00ee4e42.
        """
        if self._subject.source_form and not self._subject.has("skyrl.generator.num_inference_engines"):
            size = self.engine_tp if self._subject.has(_ENGINE + "tensor_parallel_size") else 1
            return max(1, self.num_nodes * self.gpus_per_node // size)
        return self._subject.positive("skyrl.generator.num_inference_engines")

    @cached_property
    def engine_tp(self) -> int:
        return self._subject.positive(_ENGINE + "tensor_parallel_size")

    @cached_property
    def engine_pp(self) -> int:
        return self._subject.positive(_ENGINE + "pipeline_parallel_size")

    @cached_property
    def engine_dp(self) -> int:
        return self._subject.positive(_ENGINE + "data_parallel_size")

    @cached_property
    def engine_ep(self) -> int:
        return self._subject.positive(_ENGINE + "expert_parallel_size")

    @cached_property
    def engine_slice(self) -> int:
        """TP*PP: GPUs of an engine that must share a node."""
        return self.engine_tp * self.engine_pp

    @cached_property
    def engine_gpus(self) -> int:
        """TP*PP*DP: GPUs of one engine."""
        return self.engine_slice * self.engine_dp

    @cached_property
    def expert_group(self) -> int:
        """TP*DP: ranks over which experts can be spread."""
        return self.engine_tp * self.engine_dp

    @cached_property
    def rollout_gpus(self) -> int:
        return self.engines * self.engine_gpus

    @cached_property
    def engines_local(self) -> bool:
        """Whether the engines run inside the job; remote ones occupy no GPU of it."""
        return self._subject.flag("skyrl.generator.run_engines_locally")

    @cached_property
    def multiprocess_engines(self) -> bool:
        """Engines that may cross nodes (launcher only)."""
        return self._subject.flag("skyrl.generator.inference_engine_mp_backend")

    # --- nodes ----------------------------------------------------------------------------------

    @cached_property
    def engines_per_node(self) -> int:
        """Disaggregated engines (or their slices, with the multiprocess back end) that fit one node."""
        unit = self.engine_slice if self.multiprocess_engines else self.engine_gpus
        fit = self.policy_gpus_per_node // unit
        if fit == 0:
            raise UnreadableValue(f"engines of at most {self.policy_gpus_per_node} GPUs, one needs {unit}")
        return fit

    @cached_property
    def rollout_nodes(self) -> int:
        """Nodes of the engines alone: 0 when colocated or remote."""
        if self.colocate_all or not self.engines_local:
            return 0
        units = self.engines * self.engine_dp if self.multiprocess_engines else self.engines
        return ceil_div(units, self.engines_per_node)

    @cached_property
    def draft_training_nodes(self) -> int:
        return 1 if self._subject.has("skyrl.generator.speculative_decoding.training") else 0

    @cached_property
    def separate_reference_nodes(self) -> int:
        """Nodes that an active reference adds: 0 if there is none or it shares the policy's."""
        return self.reference_nodes if self.reference_separate else 0

    @cached_property
    def derived_nodes(self) -> int:
        """Nodes that the active roles occupy."""
        if self.export_mode:
            return self.policy_nodes
        return (
            self.policy_nodes
            + self.rollout_nodes
            + self.separate_reference_nodes
            + self.draft_training_nodes
            + teacher_nodes(self._subject)
        )

    @cached_property
    def planned_gpus(self) -> int:
        """GPUs that the active roles use, without what they leave idle on their nodes."""
        if self.export_mode:
            return self.policy_world
        rollout = 0 if self.colocate_all or not self.engines_local else self.rollout_gpus
        extra = self.separate_reference_nodes + self.draft_training_nodes + teacher_nodes(self._subject)
        return self.policy_world + rollout + extra * self.policy_gpus_per_node

    # --- batches --------------------------------------------------------------------------------

    @cached_property
    def train_batch(self) -> int:
        """T, prompts."""
        return self._subject.positive("skyrl.trainer.train_batch_size")

    @cached_property
    def mini_batch(self) -> int:
        """M, prompts."""
        return self._subject.positive("skyrl.trainer.policy_mini_batch_size")

    @cached_property
    def micro_batch(self) -> int:
        """u, rows per GPU."""
        return self._subject.positive("skyrl.trainer.micro_train_batch_size_per_gpu")

    @cached_property
    def declared_samples(self) -> int:
        """n as written: answers per prompt."""
        return self._subject.positive("skyrl.generator.n_samples_per_prompt")

    @cached_property
    def best_of_n(self) -> bool:
        selector: Any = self._subject.get("skyrl.trainer.trajectory_selector.type")
        return isinstance(selector, str) and selector == "best_of_n"

    @cached_property
    def samples(self) -> int:
        """n for row arithmetic: 1 after best-of-N selection."""
        return 1 if self.best_of_n else self.declared_samples

    @cached_property
    def strategy(self) -> str:
        return self._subject.text("skyrl.trainer.strategy")

    def model_parallel(self, role: str) -> int:
        """tp*pp*cp of `policy` or `ref` under Megatron, the Ulysses size under FSDP."""
        if self.strategy != "megatron":
            return self._subject.positive(f"skyrl.trainer.{role}.sequence_parallel_size")
        base = f"skyrl.trainer.{role}.megatron_config."
        return math.prod(
            self._subject.positive(base + name)
            for name in (
                "tensor_model_parallel_size",
                "pipeline_model_parallel_size",
                "context_parallel_size",
            )
        )

    @cached_property
    def policy_dp(self) -> int:
        """dp: data-parallel ranks of the policy."""
        return self._data_parallel(self.policy_world, "policy")

    @cached_property
    def reference_dp(self) -> int:
        """Data-parallel ranks of the reference."""
        return self._data_parallel(self.reference_world, "ref")

    @cached_property
    def dispatch_multiple(self) -> int:
        """lcm of the data-parallel sizes of the roles that receive the batch."""
        return math.lcm(self.policy_dp, self.reference_dp) if self.reference_active else self.policy_dp

    @cached_property
    def rows_per_rank(self) -> int:
        """m = M*n // dp."""
        return self.mini_batch * self.samples // self.policy_dp

    def _placed(self, role_count: str, allocation_count: str) -> int:
        """A count of the placement; the launcher fills a missing one from the allocation.

        Source: MarinSkyRL cloud/iris/rl_config_translation.py@00ee4e42.
        """
        if self._subject.source_form and not self._subject.has(_PLACEMENT + role_count):
            return self._subject.launcher_count(f"iris.allocation.{allocation_count}")
        return self._subject.positive(_PLACEMENT + role_count)

    def _data_parallel(self, world: int, role: str) -> int:
        size = self.model_parallel(role)
        # Only FSDP rounds down (contract, typed-spec.md §4); a Megatron world that does not divide is BKD-06.
        if world < size or (self.strategy == "megatron" and world % size):
            raise UnreadableValue(
                f"a {role} world that its model-parallel size {size} divides, it has {world} GPUs"
            )
        return world // size


NVL72_VARIANTS = ("gb200", "gb300")
NVL72_GPUS_PER_POD = 4
"""Placement rule of Iris for NVL72 racks (marin-iris 0.2.210; contract, runtime-facts.md §14)."""


def node_width_of(variant: Any) -> int | None:
    """Return the GPUs per node that a GPU variant implies, None where it implies none."""
    nvl72 = isinstance(variant, str) and variant.lower().startswith(NVL72_VARIANTS)
    return NVL72_GPUS_PER_POD if nvl72 else None


def ceil_div(number: int, by: int) -> int:
    """Return the quotient rounded up, exactly."""
    return -(-number // by)


def divisors(number: int) -> list[int]:
    """Return the divisors of a positive number in rising order; beyond MAX_COUNT only 1 and itself."""
    if number > MAX_COUNT:
        return [1, number]
    low = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return low + [number // candidate for candidate in reversed(low) if candidate * candidate != number]


def nearest(values: Iterable[int], to: int) -> int:
    """Return the value nearest to `to`, the larger of two equally near ones."""
    return min(values, key=lambda value: (abs(value - to), -value))


def nearest_multiples(value: int, of: int) -> list[int]:
    """Return the positive multiples of `of` around `value`, nearest first."""
    below = value // of * of
    return sorted(
        {candidate for candidate in (below, below + of) if candidate > 0}, key=lambda m: (abs(m - value), m)
    )
