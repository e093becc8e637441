"""What rollout engines and weight sync ask."""

from collections.abc import Iterator
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.backend.roles import (
    TRAINED_ROLES,
    fsdp_config,
    megatron_config,
    megatron_roles,
    word,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, nearest
from tools.launcher.preflight.objectives import reads_rollout_logprobs, takes_routes_with_dcp
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_BACKEND = "skyrl.generator.backend"
_ENGINE = "skyrl.generator.inference_engine_"
_DCP = f"{_ENGINE}decode_context_parallel_size"
_MULTI_TURN = "skyrl.generator.use_conversation_multi_turn"
_HTTP = "skyrl.generator.enable_http_endpoint"
_SAMPLING = ("skyrl.generator.sampling_params", "skyrl.generator.eval_sampling_params")
_TIS = "skyrl.trainer.algorithm.use_tis"
_LOSS = "skyrl.trainer.algorithm.policy_loss_type"
_TRANSPORT = "skyrl.generator.weight_sync_transport"
_SYNC = "skyrl.generator.weight_sync_backend"
_SYNC_TIMEOUT = "skyrl.generator.expert_block_sync.timeout_seconds"
_MOE_BACKEND = "skyrl.generator.engine_init_kwargs.moe_backend"
_ASYNC = "skyrl.generator.async_engine"
_INVARIANT = "skyrl.trainer.algorithm.batch_invariant"
_LORA_RANK = "skyrl.trainer.policy.model.lora.rank"
_MEMORY_SHARE = "skyrl.generator.gpu_memory_utilization"


@check(
    "BKD-04",
    "SGLang is asked for nothing that it cannot do",
    area="backend",
    rule="backend sglang: TP=DP=EP=1, no decode context parallelism, use_conversation_multi_turn: true, no stop, no "
    "min_new_tokens, no objective that needs rollout log-probabilities, no HTTP endpoint",
    prevents="The trainer refuses each of them after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-04 (#53), cases n35, n36, n37; the trainer, utils.py@004e15f9",
)
def bkd_04(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.text(_BACKEND) != "sglang":
        return
    geometry = Geometry.of(subject)
    sizes = (
        ("TP", f"{_ENGINE}tensor_parallel_size", geometry.engine_tp if geometry.engines_local else 1),
        ("DP", f"{_ENGINE}data_parallel_size", geometry.engine_dp),
        ("EP", f"{_ENGINE}expert_parallel_size", geometry.engine_ep),
        ("decode context parallel size", _DCP, subject.positive(_DCP)),
    )
    for name, path, size in sizes:
        if size != 1:
            yield Finding(
                path=path,
                message=f"backend sglang cannot run engines with {name}={size}, only 1. Use vllm",
                repair=set_to(_BACKEND, "vllm"),
            )
    if not subject.flag(_MULTI_TURN):
        yield Finding(
            path=_MULTI_TURN,
            message="backend sglang needs use_conversation_multi_turn: true. Marin refuses to declare it: leave the default",
            repair=delete(_MULTI_TURN) if subject.source_form else set_to(_MULTI_TURN, True),
        )
    for section in _SAMPLING:
        for name in ("stop", "min_new_tokens"):
            path = f"{section}.{name}"
            # Only the presence of min_new_tokens counts (utils.py@004e15f9).
            if subject.has(path) or (name == "min_new_tokens" and subject.declares(path)):
                yield Finding(
                    path=path,
                    message=f"backend sglang has no {name}: its engines start without a tokenizer. Use vllm, or delete it",
                    repair=delete(path),
                )
    if subject.has(f"{_SAMPLING[0]}.logprobs"):
        yield Finding(
            path=f"{_SAMPLING[0]}.logprobs",
            message="backend sglang returns no rollout log-probabilities",
            repair=delete(f"{_SAMPLING[0]}.logprobs"),
            severity="warning",
        )
    if reads_rollout_logprobs(subject):
        tis = subject.flag(_TIS)
        yield Finding(
            path=_TIS if tis else _LOSS,
            message=f"{'use_tis' if tis else word(subject.text(_LOSS))} needs rollout log-probabilities, which backend sglang "
            "does not give. Use vllm",
            repair=set_to(_BACKEND, "vllm"),
        )
    if subject.flag(_HTTP):
        yield Finding(
            path=_HTTP,
            message="backend sglang has no HTTP endpoint. Use vllm, or switch it off",
            repair=set_to(_HTTP, False),
        )


@check(
    "BKD-17",
    "weights sent as expert blocks find the same experts",
    area="backend",
    rule="weight_sync_transport expert_block: entry point fully_async, not colocated, megatron with tp == etp == 1, nccl, "
    "local async vllm, TP == 1, EP == DP > 1, moe_backend triton, timeout > 0",
    prevents="The run is refused, or weights land in the wrong experts.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-17 (#66), contract runtime-facts.md §3; the trainer, Marin from 0.2.215",
)
def bkd_17(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.text(_TRANSPORT) != "expert_block":
        return
    geometry = Geometry.of(subject)
    tp, dp, ep = geometry.engine_tp, geometry.engine_dp, geometry.engine_ep
    timeout = subject.value(_SYNC_TIMEOUT, int, float)
    wants: list[tuple[str, Any, bool]] = [
        ("entry point fully_async", subject.entrypoint, subject.entrypoint == "fully_async"),
        ("strategy megatron", geometry.strategy, geometry.strategy == "megatron"),
        ("colocate_all: false", geometry.colocate_all, not geometry.colocate_all),
        ("weight_sync_backend nccl", subject.text(_SYNC), subject.text(_SYNC) == "nccl"),
        ("backend vllm", subject.text(_BACKEND), subject.text(_BACKEND) == "vllm"),
        ("run_engines_locally: true", geometry.engines_local, geometry.engines_local),
        ("async_engine: true", subject.flag(_ASYNC), subject.flag(_ASYNC)),
        ("moe_backend triton", subject.get(_MOE_BACKEND), subject.get(_MOE_BACKEND) == "triton"),
        ("expert_block_sync.timeout_seconds > 0", timeout, timeout > 0),
    ]
    wrong = [
        f"{want} (got {word(value) if isinstance(value, str) else shown(value)})"
        for want, value, right in wants
        if not right
    ]
    for role in megatron_roles(subject)[:1]:
        if (role.tp, role.etp) != (1, 1):
            wrong.append(f"training tp=etp=1 (got tp={role.tp}, etp={role.etp})")
    if tp != 1 or dp == 1 or ep != dp:
        wrong.append(f"engine TP=1 and EP=DP>1 (got TP={tp}, EP={ep}, DP={dp})")
    if wrong:
        yield Finding(
            path=_TRANSPORT,
            message=f"expert_block transport needs {'; '.join(wrong)}",
            repair=set_to(_TRANSPORT, "broadcast"),
        )


@check(
    "BKD-19",
    "batch invariance has local vLLM engines",
    area="backend",
    rule="trainer.algorithm.batch_invariant implies backend vllm and run_engines_locally: true",
    prevents="The trainer refuses the run: both sides' kernels must be under control.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-19 (#68); the trainer, utils.py@004e15f9",
)
def bkd_19(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.flag(_INVARIANT):
        return
    backend, local = subject.text(_BACKEND), Geometry.of(subject).engines_local
    if backend != "vllm" or not local:
        yield Finding(
            path=_INVARIANT,
            message=f"batch_invariant needs local engines of backend vllm, got {'local' if local else 'remote'} {word(backend)}",
            repair=set_to(_INVARIANT, False),
        )


@check(
    "BKD-26",
    "router replay has engines and a trainer that know it",
    area="backend",
    rule="moe_router_replay: strategy fsdp, fsdp2 or megatron, backend vllm, and no decode context parallelism",
    prevents="The run is refused, or experts are trained on other routes than those rolled out.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-26 (new); the trainer, utils.py@004e15f9",
)
def bkd_26(subject: PreflightSubject) -> Iterator[Finding]:
    switches = [
        f"{config(role)}.moe_router_replay"
        for role in TRAINED_ROLES
        for config in (fsdp_config, megatron_config)
    ]
    for path in switches:
        if subject.get(path) is not True:
            continue
        strategy, backend = Geometry.of(subject).strategy, subject.text(_BACKEND)
        obstacles = [
            *([] if strategy in ("fsdp", "fsdp2", "megatron") else [f"strategy {word(strategy)}"]),
            *([] if backend == "vllm" else [f"backend {word(backend)}"]),
        ]
        size = subject.positive(_DCP)
        if size > 1 and not takes_routes_with_dcp(subject):
            obstacles.append(f"decode context parallel size {size}")
        if obstacles:
            yield Finding(
                path=path,
                message=f"router replay is not available with {listed(obstacles)}",
                repair=set_to(path, False),
            )


@check(
    "BKD-27",
    "LoRA runs where it is supported",
    area="backend",
    rule="lora.rank > 0: strategy fsdp or fsdp2, backend vllm, a rank that the engine can be built for",
    prevents="The run is refused after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-27 (new); the trainer, utils.py@004e15f9",
)
def bkd_27(subject: PreflightSubject) -> Iterator[Finding]:
    rank, strategy = subject.integer(_LORA_RANK), Geometry.of(subject).strategy
    if rank == 0 or (rank > 0 and strategy == "megatron"):  # BKD-05
        return
    if rank < 0:
        yield Finding(
            path=_LORA_RANK,
            message=f"lora.rank={rank} trains no LoRA; write 0",
            repair=set_to(_LORA_RANK, 0),
            severity="warning",
        )
        return
    backend = subject.text(_BACKEND)
    if strategy not in ("fsdp", "fsdp2") or backend != "vllm":
        yield Finding(
            path=_LORA_RANK,
            message=f"LoRA of rank {rank} needs fsdp2 and vllm, got {word(strategy)} and {word(backend)}",
            repair=set_to(_LORA_RANK, 0),
        )
        return
    ranks = subject.manifest().engine_lora_ranks
    if ranks is None:
        raise MissingFact("engine_lora_ranks in the runtime manifest")
    if rank not in ranks:
        yield Finding(
            path=_LORA_RANK,
            message=f"LoRA rank {rank}: engines are built for {listed(ranks)}",
            repair=set_to(_LORA_RANK, nearest(ranks, rank)),
        )


@check(
    "BKD-31",
    "the engine's share of GPU memory exists",
    area="backend",
    rule="0 < generator.gpu_memory_utilization <= 1",
    prevents="Engines cannot reserve the memory and do not start.",
    inputs=("spec", "runtime"),
    source="case n40; nobody checks it",
)
def bkd_31(subject: PreflightSubject) -> Iterator[Finding]:
    share = subject.value(_MEMORY_SHARE, int, float)
    if not 0 < share <= 1:  # NaN as well
        yield Finding(
            path=_MEMORY_SHARE,
            message=f"gpu_memory_utilization is a share in (0, 1], got {shown(share)}",
            repair=set_to(_MEMORY_SHARE, 0.8),
        )


CHECKS = (bkd_04, bkd_17, bkd_19, bkd_26, bkd_27, bkd_31)
