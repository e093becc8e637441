"""Whether states, engines and offloaded copies fit GPU and host. The formulas: preflight/memory.py."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, ceil_div
from tools.launcher.preflight.memory import (
    UNCERTAINTY,
    MemoryEstimate,
    gigabytes,
    memory_estimate,
    offloads_reference,
)
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, shown

_NODES = "skyrl.trainer.placement.policy_num_nodes"
_MICRO = "skyrl.trainer.micro_train_batch_size_per_gpu"
_TP = "skyrl.generator.inference_engine_tensor_parallel_size"
_SHARE = "skyrl.generator.gpu_memory_utilization"
_MEMORY = "iris.allocation.memory"


@check(
    "BKD-24",
    "training states and engines fit the GPU, offloaded states the host",
    area="backend",
    rule="per GPU: parameters*(2+2+12)/shards bytes of states, with activations and logits of a full micro batch, <= memory; "
    "engine weights and the KV cache of one window <= gpu_memory_utilization*memory; per node: 12 to 16 bytes per offloaded "
    "parameter <= memory allocated. An error only where states or engine weights need over twice what there is",
    prevents="Out of memory after the model was loaded.",
    inputs=("spec", "model", "cluster", "runtime"),
    source="catalogue BKD-24 (#73), failure rows 4 (marin#7052) and 46 (NeMo-RL#456), case n13; nobody checks it. "
    f"It is {UNCERTAINTY}",
)
def bkd_24(subject: PreflightSubject) -> Iterator[Finding]:
    estimate = memory_estimate(subject)
    if estimate.gpu_memory is not None:
        yield from _training_problem(subject, estimate, estimate.gpu_memory)
        yield from _engine_problem(estimate, estimate.gpu_memory)
    yield from _host_problem(estimate)
    _require(estimate, "parameters", "gpu_memory")


def _require(estimate: MemoryEstimate, *components: str) -> None:
    """Raise MissingFact for the first of `components` that is not known."""
    for component in components:
        if component in estimate.missing:
            raise MissingFact(estimate.missing[component])


def _training_problem(subject: PreflightSubject, estimate: MemoryEstimate, memory: int) -> Iterator[Finding]:
    states, training, floor = estimate.states, estimate.training, estimate.states_floor
    if states is None or training is None or floor is None or training <= memory:
        return
    geometry = Geometry.of(subject)
    if states > memory:
        nodes = ceil_div(geometry.policy_nodes * states, memory)
        yield Finding(
            path=_NODES,
            message=f"states need about {gigabytes(states)} per GPU, {gigabytes(memory)} available: "
            f"{shown(subject.model_fact('parameters'))} parameters * (2+2+12) bytes over {counted(geometry.policy_world, 'GPU')}, "
            f"as {geometry.strategy} shards them ({UNCERTAINTY})",
            repair=f"shard over at least {shown(nodes)} policy nodes, or offload the optimizer",
            severity="error" if floor > 2 * memory else "warning",
        )
        return
    parts = {"states": states, "activations": estimate.activations, "logits": estimate.logits}
    yield Finding(
        path=_MICRO,
        message=f"training needs up to {gigabytes(training)} per GPU, {gigabytes(memory)} available: "
        + ", ".join(f"{name} {gigabytes(size)}" for name, size in parts.items() if size is not None)
        + f", when every row fills the window and logits are not computed in chunks ({UNCERTAINTY})",
        repair="use smaller micro batches, split the sequence, or shard over more GPUs",
        severity="warning",
    )


def _engine_problem(estimate: MemoryEstimate, memory: int) -> Iterator[Finding]:
    weights, budget, cache = estimate.engine_weights, estimate.engine_budget, estimate.engine_kv_cache
    if weights is None or budget is None:
        return
    if weights > budget:
        yield Finding(
            path=_TP,
            message=f"engine weights need about {gigabytes(weights)} per GPU, gpu_memory_utilization leaves "
            f"{gigabytes(budget)} ({UNCERTAINTY})",
            repair=f"raise TP or PP to at least {shown(ceil_div(weights, budget))} times as many GPUs per engine",
            severity="error" if weights > 2 * memory else "warning",
        )
    elif cache is not None and weights + cache > budget:
        yield Finding(
            path=_SHARE,
            message=f"engine weights {gigabytes(weights)} and the KV cache of one full window {gigabytes(cache)} exceed "
            f"the {gigabytes(budget)} that gpu_memory_utilization leaves per GPU: the engine refuses the window",
            repair="raise gpu_memory_utilization or TP, or use a smaller window",
            severity="warning",
        )


def _host_problem(estimate: MemoryEstimate) -> Iterator[Finding]:
    offloaded, memory = estimate.host_policy, estimate.host_memory
    if offloaded is not None and memory is not None and offloaded > memory:
        yield Finding(
            path=_MEMORY,
            message=f"offloaded states need about {gigabytes(offloaded)} of host memory per node, {gigabytes(memory)} are "
            f"allocated ({UNCERTAINTY})",
            repair="ask for more memory, or use more policy nodes",
            severity="warning",
        )


@check(
    "BKD-25",
    "the host holds the offloaded reference",
    area="backend",
    rule="fsdp2 with an active colocated reference: 2 bytes per parameter per node, on top of the offloaded optimizer, <= "
    "memory allocated",
    prevents="The host runs out of memory, without a setting in the recipe: the trainer offloads the reference by itself.",
    inputs=("spec", "model", "cluster", "runtime"),
    source="catalogue BKD-25 (new), contract runtime-facts.md §2 (utils.py@004e15f9); nobody checks it. "
    f"It is {UNCERTAINTY}",
)
def bkd_25(subject: PreflightSubject) -> Iterator[Finding]:
    if not offloads_reference(subject):
        return
    estimate = memory_estimate(subject)
    reference, policy, memory = estimate.host_reference, estimate.host_policy, estimate.host_memory
    _require(estimate, "host_reference", "host_policy", "host_memory")
    if reference is None or policy is None or memory is None:
        return
    if policy <= memory < policy + reference:
        yield Finding(
            path=_MEMORY,
            message=f"reference is offloaded to host memory: +{gigabytes(reference)} per node on top of "
            f"{gigabytes(policy)} of offloaded states, {gigabytes(memory)} allocated",
            repair="ask for more memory, or use more policy nodes",
            severity="warning",
        )


CHECKS = (bkd_24, bkd_25)
