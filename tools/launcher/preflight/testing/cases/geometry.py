"""Cases of the GEO checks. "Example A" and so on: contract, typed-spec.md §4."""

from typing import Any

from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import (
    DELETED,
    cluster_card,
    model_card,
    pinned_runtime,
)
from tools.launcher.rl.recipe import SkyRLRecipe

NODES = "iris.allocation.num_nodes"
WIDTH = "iris.allocation.gpus_per_node"
VARIANT = "iris.allocation.gpu_variant"
PLACEMENT = "skyrl.trainer.placement"
POLICY = f"{PLACEMENT}.policy_num_nodes"
POLICY_WIDTH = f"{PLACEMENT}.policy_num_gpus_per_node"
REFERENCE = f"{PLACEMENT}.ref_num_nodes"
REFERENCE_WIDTH = f"{PLACEMENT}.ref_num_gpus_per_node"
COLOCATED = f"{PLACEMENT}.colocate_all"
COLOCATED_REFERENCE = f"{PLACEMENT}.colocate_policy_ref"
ENGINES = "skyrl.generator.num_inference_engines"
TP = "skyrl.generator.inference_engine_tensor_parallel_size"
PP = "skyrl.generator.inference_engine_pipeline_parallel_size"
DP = "skyrl.generator.inference_engine_data_parallel_size"
EP = "skyrl.generator.inference_engine_expert_parallel_size"
MULTIPROCESS = "skyrl.generator.inference_engine_mp_backend"
LOCAL = "skyrl.generator.run_engines_locally"
TRAIN = "skyrl.trainer.train_batch_size"
MINI = "skyrl.trainer.policy_mini_batch_size"
SAMPLES = "skyrl.generator.n_samples_per_prompt"
KL = "skyrl.trainer.algorithm.use_kl_loss"
DRAFT = "skyrl.generator.speculative_decoding"
SEQUENCE = "skyrl.trainer.policy.sequence_parallel_size"
RESIDENT = "skyrl.trainer.algorithm.distillation.residency.max_resident"
NODE_LOCAL = "skyrl.generator.node_local"

_SPLIT = {COLOCATED: False, ENGINES: 8}
"""The smoke example with its engines on a node of their own."""
_RACKED = {VARIANT: "GB200", WIDTH: 4, POLICY_WIDTH: 4, REFERENCE_WIDTH: 4}
_SEPARATE = {KL: True, COLOCATED_REFERENCE: False}

_ENDPOINT: dict[str, Any] = {"url": "https://teacher.lab/v1", "auth": "env:KEY", "max_concurrency": 4}
_EXTERNAL: dict[str, Any] = {
    "source": "openai_compatible",
    "endpoints": [_ENDPOINT],
    "tokenizer_fingerprint": "sha256:" + "a" * 64,
}
_RESOURCES: dict[str, Any] = {
    "num_nodes": 2,
    "gpus_per_node": 8,
    "tensor_parallel_size": 4,
    "colocation_group": "a",
}
_PINNED: dict[str, Any] = {"source": "local_inference", "resources": _RESOURCES}
_ROTATING: dict[str, Any] = _PINNED | {
    "placement": "rotating",
    "resources": _RESOURCES | {"colocation_group": "r"},
}


def _teachers(**teachers: Any) -> dict[str, Any]:
    return {"skyrl.teachers": teachers}


def _external(**settings: Any) -> dict[str, Any]:
    return _teachers(t=_EXTERNAL | settings)


def _pinned(**resources: Any) -> dict[str, Any]:
    return _teachers(t=_PINNED | {"resources": _RESOURCES | resources})


def _recipe(**trainer: Any) -> SkyRLRecipe:
    return SkyRLRecipe.combine(batches={"trainer": trainer})


def _node_local() -> Any:
    return pinned_runtime(node_local_inference="generator.node_local")


def _old_manifest() -> Any:
    return pinned_runtime(node_local_inference=DELETED)


FAILING = (
    Fails(
        check="GEO-01",
        changes={ENGINES: 0},
        says="role plan: num_inference_engines must be a positive integer, got 0",
    ),
    Fails(
        check="GEO-01", changes={TRAIN: "16"}, says="train_batch_size must be a positive integer, got '16'"
    ),
    Fails(
        check="GEO-01", changes={TRAIN: 16.0}, says="train_batch_size must be a positive integer, got 16.0"
    ),
    Fails(check="GEO-01", changes={TP: True}, says="size must be a positive integer, got true", at=TP),
    Fails(check="GEO-01", changes={POLICY: -1}, says="policy_num_nodes must be a positive integer, got -1"),
    Fails(check="GEO-01", changes={WIDTH: [8]}, says="gpus_per_node must be a positive integer, got a list"),
    Fails(
        check="GEO-01",
        changes={NODES: "1"},
        says="allocation: num_nodes must be a positive integer, got '1'; the launcher reads it as 1",
        severity="warning",
    ),
    Fails(
        check="GEO-01",
        changes={NODES: True},
        says="allocation: num_nodes must be a positive integer, got true",
    ),
    # The launcher's schema converts text of digits and no float (OmegaConf 2.1 to 2.4).
    Fails(check="GEO-01", changes={WIDTH: 8.0}, says="gpus_per_node must be a positive integer, got 8.0"),
    Fails(check="GEO-01", changes={NODES: 1.0}, says="num_nodes must be a positive integer, got 1.0"),
    Fails(
        check="GEO-01", changes={WIDTH: "8"}, says="got '8'; the launcher reads it as 8", severity="warning"
    ),
    Fails(check="GEO-01", changes={WIDTH: 8.5}, says="gpus_per_node must be a positive integer, got 8.5"),
    Fails(check="GEO-01", changes={NODES: 2**63}, says="of at most 1000000000, got 9223372036854775808"),
    # The other numbers tell what fits.
    *(
        Fails(check="GEO-01", base=base, changes={path: value}, says="must be a positive integer")
        for base in ("smoke", "moe")
        for path in (
            ENGINES,
            TP,
            PP,
            DP,
            EP,
            POLICY,
            POLICY_WIDTH,
            REFERENCE,
            NODES,
            WIDTH,
            TRAIN,
            MINI,
            SAMPLES,
        )
        for value in (0, True, [1])
    ),
    Fails(check="GEO-01", changes={NODES: 16**5000}, says="got an integer of 20001 bits"),
    Fails(check="GEO-01", changes={COLOCATED: "true"}, says="colocate_all must be true or false, got 'true'"),
    Fails(
        check="GEO-01",
        changes={COLOCATED_REFERENCE: 1},
        says="colocate_policy_ref must be true or false, got 1",
    ),
    Fails(
        check="GEO-02",
        changes={POLICY_WIDTH: 4},
        says="policy uses 4 of 8 GPUs per node; roles take whole nodes",
    ),
    Fails(check="GEO-02", changes={POLICY: 2}, says="policy_num_nodes=2 exceeds the allocation of 1 node"),
    Fails(check="GEO-02", base="moe", changes={POLICY: 9}, says="exceeds the allocation of 8 nodes"),
    # Example A3 and failure rows 11 and 38.
    Fails(
        check="GEO-03",
        changes={NODES: 3, POLICY: 3, TP: 3, ENGINES: 8},
        says="slice TP*PP=3 does not tile 8 GPUs per node (8 % 3 = 2). Choose TP*PP from 1, 2, 4, 8",
    ),
    Fails(
        check="GEO-03", changes={NODES: 3, POLICY: 3, ENGINES: 4, TP: 6}, says="slice TP*PP=6 does not tile 8"
    ),
    Fails(check="GEO-03", changes={WIDTH: 9, POLICY_WIDTH: 9, TP: 2}, says="(9 % 2 = 1)"),
    Fails(check="GEO-03", changes={TP: 3, PP: 2}, says="slice TP*PP=6"),
    # Examples D3 and F2.
    Fails(
        check="GEO-04",
        base="moe",
        changes={DP: 16, EP: 16, ENGINES: 2},
        says="one engine needs TP*PP*DP=16 GPUs, a node has 8. Reduce DP to 8",
    ),
    Fails(
        check="GEO-04",
        base="moe",
        changes={DP: 16, EP: 16, ENGINES: 2, MULTIPROCESS: True},
        says="one engine of 16 GPUs crosses nodes of 8",
        severity="warning",
    ),
    # The launcher divides by the TP that the recipe names, and engines take the default, 4.
    Fails(
        check="GEO-08",
        changes={ENGINES: DELETED, TP: DELETED},
        says="policy has 8 GPUs, engines use E*TP*PP*DP=8*4=32",
    ),
    # Failure row 40.
    Fails(check="GEO-05", changes=_SPLIT | {TP: 16}, says="TP*PP=16 exceeds the 8 GPUs of a node"),
    Fails(check="GEO-05", changes={TP: 4, PP: 4}, says="TP*PP=16 exceeds"),
    Fails(check="GEO-05", base="moe", changes={TP: 16, DP: 1, EP: 1, ENGINES: 2}, says="TP*PP=16 exceeds"),
    Fails(check="GEO-05", base="moe", changes={PP: 16, DP: 1, EP: 1, ENGINES: 2}, says="TP*PP=16 exceeds"),
    Fails(
        check="GEO-06", base="moe", changes={EP: 3}, says="EP=3 does not divide TP*DP=8. Divisors: 1, 2, 4, 8"
    ),
    # Example D2.
    Fails(
        check="GEO-07",
        base="moe",
        changes={TP: 2, DP: 4, EP: 4},
        says="EP=4 with TP*DP=8: vLLM spans exactly TP*DP ranks",
    ),
    # Example A2 and failure row 37.
    Fails(
        check="GEO-08",
        changes={TP: 2},
        says="colocated: policy has 8 GPUs, engines use E*TP*PP*DP=8*2=16",
        at=ENGINES,
    ),
    Fails(check="GEO-08", changes={ENGINES: 3, TP: 2}, says="engines use E*TP*PP*DP=3*2=6"),
    Fails(check="GEO-08", changes={ENGINES: 2, TP: 3}, says="engines use E*TP*PP*DP=2*3=6"),
    Fails(
        check="GEO-09",
        base="moe",
        changes={NODES: 7},
        says="roles need 64 GPUs, the allocation of 7 nodes has 56",
    ),
    # Example G.
    Fails(check="GEO-10", changes={NODES: 2}, says="allocation has 2 nodes, the roles occupy 1 (policy 1)"),
    Fails(check="GEO-10", base="moe", changes={NODES: 9}, says="the roles occupy 8 (policy 4, rollout 4)"),
    Fails(
        check="GEO-10",
        changes=_SPLIT | {NODES: 3, ENGINES: 5, TP: 3},
        says="the roles occupy 4 (policy 1, rollout 3)",
    ),
    Fails(
        check="GEO-10",
        base="moe",
        changes=_pinned(),
        says="the roles occupy 10 (policy 4, rollout 4, teachers 2)",
    ),
    Fails(
        check="GEO-10", base="moe", changes={"run.mode": "checkpoint_export"}, says="(policy 4, export mode)"
    ),
    Fails(
        check="GEO-10",
        base="moe",
        changes=_SEPARATE | {NODES: 12, REFERENCE: DELETED},
        says="the roles occupy 20 (policy 4, rollout 4, reference 12)",
    ),
    Fails(
        check="GEO-11",
        changes={WIDTH: 4},
        says="allocation.gpus_per_node=4, policy uses 8; both must be equal",
    ),
    Fails(
        check="GEO-11",
        changes={POLICY_WIDTH: 4},
        facts={"cluster": cluster_card(gpus_per_node=4)},
        says="allocation.gpus_per_node=8, policy uses 4; both must equal the node's 4",
    ),
    Fails(
        check="GEO-11",
        changes={VARIANT: "GB200", POLICY_WIDTH: 4},
        says="allocation.gpus_per_node=8, policy uses 4; both must be equal",
    ),
    # The GPU variant decides, as in GEO-21: else the two repairs undo each other.
    Fails(
        check="GEO-11",
        changes={VARIANT: "GB200", WIDTH: 4},
        says="allocation.gpus_per_node=4, policy uses 8; both must be equal",
    ),
    Fails(
        check="GEO-12",
        changes={REFERENCE_WIDTH: 4},
        says="roles use node widths 8 (policy) and 4 (reference)",
    ),
    Fails(
        check="GEO-12",
        changes=_pinned(gpus_per_node=4),
        says="roles use node widths 8 (policy) and 4 (teacher)",
    ),
    Fails(
        check="GEO-13",
        changes={COLOCATED_REFERENCE: False},
        says="colocate_all needs colocate_policy_ref: true",
    ),
    Fails(
        check="GEO-13",
        base="moe",
        changes={REFERENCE: DELETED},
        says="policy_num_nodes=4, ref_num_nodes=8",
    ),
    Fails(check="GEO-13", changes={REFERENCE: 3}, says="policy_num_nodes=1, ref_num_nodes=3"),
    # Examples E and E2.
    Fails(
        check="GEO-14",
        base="moe",
        changes=_SEPARATE,
        says="separate reference adds 4 nodes: 12 needed, 8 allocated",
    ),
    Fails(
        check="GEO-14",
        base="moe",
        changes=_SEPARATE | {REFERENCE: 2},
        says="adds 2 nodes: 10 needed, 8 allocated",
    ),
    Fails(
        check="GEO-15",
        changes={"skyrl.trainer.critic.model.path": "team/value-model"},
        says="cannot place a critic",
    ),
    Fails(
        check="GEO-15",
        changes={"skyrl.trainer.algorithm.advantage_estimator": "gae"},
        says="advantage_estimator gae needs a critic",
    ),
    # Example I.
    Fails(
        check="GEO-16",
        base="moe",
        changes={ENGINES: 1, NODES: 5, f"{DRAFT}.training": {"interval_steps": 1}},
        says="draft training adds 1 node: 6 needed, 5 allocated",
    ),
    Fails(check="GEO-17", changes={"skyrl.teachers": [1]}, says="teachers is a list, not a mapping"),
    Fails(check="GEO-17", changes=_teachers(t=3), says="teacher 't' is 3, not a mapping"),
    Fails(
        check="GEO-17",
        changes=_teachers(t={"source": "resident"}),
        says="teacher source 'resident' has no scoring adapter in this runtime. Known: openai_compatible,",
    ),
    *(
        Fails(
            check="GEO-17",
            changes=_teachers(t=teacher | {"source": "frozen_worker"}),
            says="teacher source 'frozen_worker' has no scoring adapter",
        )
        for teacher in (_EXTERNAL, _PINNED)
    ),
    Fails(
        check="GEO-17",
        changes=_teachers(t={"source": "local_inference"}),
        says="a local teacher needs resources",
    ),
    Fails(check="GEO-17", changes=_pinned(num_nodes=0), says="num_nodes must be a positive integer, got 0"),
    Fails(
        check="GEO-17", changes=_pinned(colocation_group=" "), says="colocation_group must be a name, got ' '"
    ),
    Fails(
        check="GEO-17",
        changes=_pinned(tensor_parallel_size=3),
        says="teachers.t: total_gpus=16 is not a multiple of tensor parallel size 3",
    ),
    Fails(
        check="GEO-17",
        changes=_teachers(a=_PINNED, b=_PINNED),
        says="pinned teachers skyrl.teachers.a and skyrl.teachers.b share the group 'a'",
    ),
    Fails(
        check="GEO-17",
        changes=_teachers(a=_ROTATING, b=_ROTATING | {"resources": _RESOURCES | {"num_nodes": 1}}),
        says="rotating teachers share one slot, but their resources differ",
    ),
    Fails(
        check="GEO-17",
        changes=_teachers(a=_PINNED, b=_ROTATING | {"resources": _RESOURCES}),
        says="pinned and rotating teachers share the group 'a'",
    ),
    Fails(
        check="GEO-17",
        changes=_teachers(a=_ROTATING) | {RESIDENT: 2},
        says="max_resident=2: there is exactly one rotating slot",
    ),
    Fails(
        check="GEO-17",
        changes=_external(endpoints=[]),
        says="an external teacher needs endpoints, got a list",
    ),
    Fails(
        check="GEO-17",
        changes=_external(endpoints=[_ENDPOINT | {"url": "https://teacher.lab/api"}]),
        says="endpoint 'https://teacher.lab/api' is no HTTP(S) address ending in /v1",
    ),
    Fails(
        check="GEO-17",
        changes=_external(endpoints=[_ENDPOINT | {"url": "ftp://[/v1"}]),
        says="'ftp://[/v1' is no HTTP(S)",
    ),
    Fails(
        check="GEO-17",
        changes=_external(endpoints=[_ENDPOINT | {"auth": "sk-123"}]),
        says="auth is not a reference to a credential (env:, file: or gcp-secret://)",
    ),
    Fails(
        check="GEO-17",
        changes=_external(tokenizer_fingerprint="sha256:" + "A" * 64),
        says="is not sha256: and 64 lower-case hex digits",
    ),
    Fails(
        check="GEO-18",
        planned=lambda: planned(recipe=_recipe(train_batch_size=16.0)),
        says="recipe part 'batches' sets trainer.train_batch_size=16.0 (float), which disagrees with train_batch_size=16",
    ),
    Fails(
        check="GEO-18",
        planned=lambda: planned(recipe=_recipe(train_batch_size=16)),
        says="sets trainer.train_batch_size=16 (int), which repeats train_batch_size=16 of the role plan",
    ),
    Fails(
        check="GEO-18",
        planned=lambda: planned(
            recipe=SkyRLRecipe.combine(
                a={"trainer": {"train_batch_size": 16}}, b={"trainer": {"train_batch_size": 32}}
            )
        ),
        says="recipe parts 'a' and 'b' set trainer.train_batch_size=16 and 32 (int), which disagrees with",
    ),
    Fails(
        check="GEO-18",
        planned=lambda: planned(recipe=_recipe(train_batch_size=None)),
        says="sets trainer.train_batch_size=null, which disagrees with train_batch_size=16 of the role plan",
    ),
    Fails(
        check="GEO-19",
        changes={PLACEMENT: None},
        planned=lambda: planned(recipe=_recipe(placement=None)),
        says="recipe part 'batches' sets trainer.placement=null, which must be a mapping",
    ),
    Fails(check="GEO-19", changes={"skyrl.trainer": None}, says="skyrl.trainer must be a mapping, got null"),
    Fails(
        check="GEO-19", changes={PLACEMENT: 3}, says="skyrl.trainer.placement must be a mapping, got 3 (int)"
    ),
    Fails(
        check="GEO-19",
        changes={"skyrl.generator": []},
        says="skyrl.generator must be a mapping, got a list",
    ),
    Fails(
        check="GEO-20",
        runtime=_node_local,
        changes={NODE_LOCAL: True, TP: 2},
        says="got colocate_all=true, TP=2",
        at=NODE_LOCAL,
    ),
    Fails(
        check="GEO-20",
        base="moe",
        runtime=_node_local,
        changes={NODE_LOCAL: True, EP: 4, "skyrl.generator.async_engine": False},
        says="EP==DP<=8; got async_engine=false, EP=4",
    ),
    Fails(
        check="GEO-21",
        changes={VARIANT: "GB200", WIDTH: 4, NODES: 17},
        says="17 NVL72 nodes do not split evenly over 2 racks of 16 with at least 10 each. Valid near 17: 14, 15, 16, 20",
    ),
    Fails(
        check="GEO-21",
        changes={VARIANT: "gb300", WIDTH: 4, NODES: 18},
        says="18 NVL72 nodes do not split evenly",
    ),
    Fails(
        check="GEO-21",
        changes={VARIANT: "GB200"},
        says="pods on 'GB200' use 4 GPUs, gpus_per_node=8",
        at=WIDTH,
    ),
    *(
        Fails(
            check="GEO-21",
            changes=_RACKED | {NODES: nodes, POLICY: nodes, REFERENCE: nodes, ENGINES: nodes * 4},
            facts=facts,
            says=f"{nodes} NVL72 nodes do not split evenly",
        )
        for nodes in (17, 18, 19, 34, 35, 216)
        for facts in ({}, {"cluster": cluster_card(max_nodes=216)})
    ),
    # Example H.
    Fails(
        check="GEO-22",
        changes=_SPLIT | {TP: 3, ENGINES: 5},
        says="engines of 3 GPUs leave 2 of 8 GPUs idle per rollout node. Sizes that fill a node: 1, 2, 4, 8",
        severity="warning",
    ),
    # Example E3.
    Fails(
        check="GEO-23",
        base="moe",
        changes={KL: False, COLOCATED_REFERENCE: False},
        says="no KL term is active, so the reference does not exist, but colocate_policy_ref is false",
    ),
    # Examples H and J.
    Fails(
        check="GEO-24",
        changes=_SPLIT | {TP: 3, ENGINES: 5},
        says="5 engines at 2 per node leave room for 1 more",
        severity="warning",
    ),
    Fails(
        check="GEO-24",
        changes=_SPLIT | {ENGINES: 12},
        says="12 engines at 8 per node leave room for 4 more",
        severity="warning",
    ),
    Fails(
        check="GEO-25",
        changes={NODES: 40},
        facts={"cluster": cluster_card(max_nodes=32)},
        says="40 nodes requested, lab-cluster has 32",
    ),
    # 216 nodes are no legal gang of NVL72 racks (GEO-21).
    Fails(
        check="GEO-25",
        changes=_RACKED | {NODES: 217, POLICY: 217, REFERENCE: 217, ENGINES: 868},
        facts={"cluster": cluster_card(max_nodes=216)},
        says="217 nodes requested, lab-cluster has 216",
    ),
    Fails(
        check="GEO-25",
        base="moe",
        facts={"cluster": cluster_card(max_nodes=6)},
        says="8 nodes requested, lab-cluster has 6",
    ),
    Fails(
        check="GEO-26",
        changes={SEQUENCE: 3},
        says="sequence_parallel_size=3 does not divide the policy world of 8",
    ),
    Fails(
        check="GEO-26",
        changes={SEQUENCE: 4},
        facts={"model": model_card(num_attention_heads=14)},
        says="sequence_parallel_size=4 does not divide 14 attention heads. Valid: 1, 2",
    ),
    Fails(
        check="GEO-26",
        changes={KL: True, "skyrl.trainer.ref.sequence_parallel_size": 3},
        says="does not divide the ref world of 8 GPUs",
    ),
)

PASSING = (
    *(
        Passes(check=f"GEO-{number:02}", base=base)
        for base in ("smoke", "moe")
        for number in range(1, 27)
        if number not in (18, 25)
    ),
    Passes(check="GEO-01", changes={POLICY: DELETED, TRAIN: None}),
    Passes(check="GEO-02", changes={POLICY_WIDTH: 4}, facts={"cluster": cluster_card(gpus_per_node=4)}),
    # Example B: data-parallel ranks may cross nodes.
    *(
        Passes(check=check, changes={NODES: 2, POLICY: 2, REFERENCE: 2, ENGINES: 1, DP: 16, EP: 16})
        for check in ("GEO-03", "GEO-07", "GEO-08", "GEO-10")
    ),
    Passes(check="GEO-03", changes=_SPLIT | {TP: 3}),
    # Example D, and F on nodes of 4 GPUs.
    *(
        Passes(check=check, base="moe", changes=change)
        for change in (
            {TP: 2, DP: 4},
            {VARIANT: "GB200", WIDTH: 4, POLICY_WIDTH: 4, REFERENCE_WIDTH: 4, DP: 4, EP: 4},
        )
        for check in ("GEO-04", "GEO-07", "GEO-09", "GEO-10", "GEO-21")
    ),
    # Examples D3 and F2 in the launcher's multiprocess form.
    Passes(check="GEO-10", base="moe", changes={DP: 16, EP: 16, ENGINES: 2, MULTIPROCESS: True}),
    Passes(check="GEO-07", base="moe", changes={EP: 1}),
    Passes(check="GEO-07", base="moe", changes={EP: 4, "skyrl.generator.backend": "sglang"}),
    Passes(check="GEO-08", changes={ENGINES: 1, TP: 4, PP: 2}),
    Passes(check="GEO-08", changes={ENGINES: 3, LOCAL: False}),
    Passes(check="GEO-10", base="moe", changes={NODES: 4, LOCAL: False}),
    # Examples E, E2, H, I.
    Passes(check="GEO-10", base="moe", changes=_SEPARATE | {NODES: 12}),
    # The launcher fills what is left out from the allocation.
    Passes(check="GEO-10", changes={POLICY: DELETED, POLICY_WIDTH: DELETED}),
    *(
        Passes(
            check=check,
            changes=dict.fromkeys(left_out, DELETED) | {WIDTH: width, ENGINES: width},
        )
        for check in ("GEO-02", "GEO-08", "GEO-11", "GEO-12")
        for width in (4, 8, 16)
        for left_out in ((POLICY_WIDTH, REFERENCE_WIDTH), (POLICY, REFERENCE, POLICY_WIDTH, REFERENCE_WIDTH))
    ),
    *(Passes(check=check, changes={POLICY_WIDTH: DELETED}) for check in ("GEO-02", "GEO-11", "GEO-12")),
    Passes(check="GEO-12", changes={REFERENCE_WIDTH: DELETED}),
    # GEO-02 and GEO-11 are one fault, and settle the engines and the reference's width.
    *(Passes(check=check, changes={POLICY_WIDTH: 4}) for check in ("GEO-08", "GEO-11", "GEO-12")),
    Passes(check="GEO-08", changes={ENGINES: DELETED, TP: 2}),
    Passes(check="GEO-08", changes={ENGINES: 2, TP: DELETED}),
    *(Passes(check=check, changes={NODES: "1", WIDTH: "8"}) for check in ("GEO-02", "GEO-10", "GEO-11")),
    Passes(check="GEO-02", changes={"run.mode": "checkpoint_export", POLICY_WIDTH: 4}),
    Passes(check="GEO-11", changes={"run.mode": "checkpoint_export", POLICY_WIDTH: 4}),
    *(
        Passes(check=check, base="moe", changes=_SEPARATE | {"run.mode": "checkpoint_export", NODES: 4})
        for check in ("GEO-09", "GEO-10", "GEO-14")
    ),
    Passes(check="GEO-14", base="moe", changes=_SEPARATE | {NODES: 10, REFERENCE: 2}),
    Passes(check="GEO-10", changes=_SPLIT | {NODES: 4, ENGINES: 5, TP: 3}),
    Passes(
        check="GEO-16", base="moe", changes={ENGINES: 1, NODES: 6, f"{DRAFT}.training": {"interval_steps": 1}}
    ),
    Passes(check="GEO-10", base="moe", changes=_pinned() | {NODES: 10}),
    Passes(check="GEO-10", base="moe", changes=_teachers(a=_ROTATING, b=_ROTATING) | {NODES: 10}),
    Passes(check="GEO-10", base="moe", changes={"run.mode": "checkpoint_export", NODES: 4}),
    Passes(check="GEO-13", changes={REFERENCE: DELETED}),
    Passes(check="GEO-17", changes=_external()),
    # runtime-facts.md §10: what a legal teacher may look like.
    *(
        Passes(check="GEO-17", changes=_external(endpoints=[_ENDPOINT | {"url": url, "auth": auth}]))
        for url in ("http://10.0.0.1:8000/v1", "https://teacher.lab/api/v1", " https://teacher.lab/v1 ")
        for auth in ("env:KEY", "file:/run/secrets/key", "gcp-secret://lab/key", None)
    ),
    Passes(check="GEO-17", changes=_teachers(t=_PINNED)),
    Passes(check="GEO-17", changes=_teachers(t=_PINNED | {"placement": "pinned"})),
    Passes(
        check="GEO-17", changes=_teachers(a=_PINNED, b=_ROTATING, c=_ROTATING, d=_EXTERNAL) | {RESIDENT: 1}
    ),
    Passes(check="GEO-18", planned=lambda: planned(recipe=_recipe(epochs=1))),
    Passes(check="GEO-20", base="moe", runtime=_node_local, changes={NODE_LOCAL: True}),
    *(
        Passes(check="GEO-21", changes={VARIANT: "GB200", WIDTH: 4, NODES: nodes})
        for nodes in (8, 16, 20, 24, 32, 33, 36)
    ),
    # EXE-06 reports the width where a card has one.
    Passes(
        check="GEO-21",
        changes={VARIANT: "GB200", WIDTH: 8},
        facts={"cluster": cluster_card(gpus_per_node=4)},
    ),
    Passes(
        check="GEO-21",
        changes={VARIANT: "GB200", WIDTH: 4, NODES: 18},
        facts={"cluster": cluster_card(schedulable_rack_nodes=18)},
    ),
    Passes(check="GEO-25", changes={NODES: 32}, facts={"cluster": cluster_card(max_nodes=32)}),
    Passes(check="GEO-26", changes={SEQUENCE: 2}, facts={"model": model_card(num_attention_heads=14)}),
)

NOT_CHECKED = (
    NotChecked(check="GEO-18", needs="the artifact graph"),
    NotChecked(check="GEO-25", needs="a cluster card with max_nodes"),
    NotChecked(check="GEO-26", changes={SEQUENCE: 2}, needs="a model card with num_attention_heads"),
    NotChecked(check="GEO-20", runtime=_old_manifest, needs="node_local_inference in the runtime manifest"),
    NotChecked(check="GEO-10", runtime=lambda: None, base="moe", needs="a runtime manifest"),
    NotChecked(check="GEO-10", changes={NODES: DELETED}, needs=f"a usable value: {NODES}, which is missing"),
    NotChecked(check="GEO-09", changes={NODES: True}, needs=f"a usable value: {NODES} as int, it is true"),
    NotChecked(check="GEO-10", changes=_SPLIT | {TP: 9}, needs="engines of at most 8 GPUs, one needs 9"),
    NotChecked(
        check="GEO-10",
        changes=_teachers(t=_PINNED | {"resources": 1}),
        needs="skyrl.teachers.t.resources with",
    ),
)
