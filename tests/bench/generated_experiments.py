"""Any number of experiments, all legal and all different, as a laboratory's folder would have them.

Which experiment has which number never changes, so that runs of a bench compare. Standard library only: the
benches that write these call Bazel and so run outside it.
"""

import dataclasses
import string
from pathlib import Path

FOLDER = "experiments/gen"
"""Where they are in a checkout, one package each."""

_HUB, _HUB_DEV = "lib/iris/config/marin.yaml", "lib/iris/config/marin-dev.yaml"


@dataclasses.dataclass(frozen=True)
class GeneratedExperiment:
    """One package.

    Attributes:
        name: of package and target.
        files: name in the package -> text.
    """

    name: str
    files: dict[str, str]

    @property
    def label(self) -> str:
        return f"//{FOLDER}/{self.name}"


@dataclasses.dataclass(frozen=True)
class _Model:
    card: str
    name: str
    tokenizer: str
    revision: str


@dataclasses.dataclass(frozen=True)
class _Cluster:
    card: str
    hub: str | None
    longest: str
    """How long a run may take: deadline of coordinator (hours) and child job (seconds)."""


@dataclasses.dataclass(frozen=True)
class _Shape:
    """Strategy and roles on nodes of eight GPUs."""

    nodes: int
    policy_nodes: int
    colocated: bool
    engine_tp: int = 1
    engine_dp: int = 1
    parallel: tuple[int, int, int] | None = None
    """tp, pp and ep of Megatron; None for FSDP2."""

    @property
    def engines(self) -> int:
        rollout_nodes = self.nodes if self.colocated else self.nodes - self.policy_nodes
        return rollout_nodes * 8 // (self.engine_tp * self.engine_dp)


_SMALL = (
    _Model("qwen3_0_6b", "qwen3-0.6b", "Qwen/Qwen3-0.6B", "c1899de289a04d12100db370d81485cdf75e47ca"),
    _Model(
        "qwen2_5_0_5b_instruct",
        "qwen2.5-0.5b-instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "7ae557604adf67be50417f59c2c2f167def9a775",
    ),
)
_DENSE = (
    *_SMALL,
    _Model("qwen3_8b", "qwen3-8b", "Qwen/Qwen3-8B", "b968826d9c46dd6066d109eabc6255188de91218"),
)
_MIXTURES = (
    _Model(
        "qwen3_30b_a3b", "qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", "ad44e777bcd18fa416d9da3bd8f70d33ebb85d39"
    ),
    _Model(
        "qwen3_coder_30b_a3b_instruct",
        "qwen3-coder-30b-a3b-instruct",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        "b2cff646eb4bb1d68355c01b18ae02e7cf42d120",
    ),
)
_LARGE_CLUSTERS = (_Cluster("cw_us_east_02a", _HUB, "24, 0"), _Cluster("cw_rno2a", _HUB, "12, 36000"))
_CLUSTERS = (*_LARGE_CLUSTERS, _Cluster("cw_us_west_04a", _HUB_DEV, "6, 18000"))
_LOCAL = _Cluster("local", None, "1, 1800")

_DENSE_SHAPES = (
    _Shape(1, 1, colocated=True),
    _Shape(2, 2, colocated=True, engine_tp=2),
    _Shape(2, 1, colocated=False, engine_tp=2),
    _Shape(2, 2, colocated=True),
)
_DENSE_MEGATRON = (
    _Shape(2, 2, colocated=True, parallel=(2, 1, 1)),
    _Shape(2, 1, colocated=False, engine_tp=2, parallel=(1, 2, 1)),
)
_MIXTURE_SHAPES = (
    _Shape(8, 4, colocated=False, engine_dp=8, parallel=(1, 2, 8)),
    _Shape(12, 8, colocated=False, engine_dp=8, parallel=(1, 4, 8)),
    _Shape(16, 8, colocated=False, engine_dp=8, parallel=(1, 2, 8)),
)
_ESTIMATORS = ("grpo", "rloo")
_WINDOWS = ((1536, 1024), (2560, 2048), (4608, 4096), (9216, 8192))
"""Tokens of a request, and of those the new ones."""
_STEPS = (8, 40, 200, 400)
_RATES = (5e-07, 1e-06, 2e-06)
_TEMPERATURES = (1.0, 0.9, 0.8)
_SAMPLES = (4, 8, 16)


def generated_experiment(number: int) -> GeneratedExperiment:
    """Return the experiment of a number, from 0 on.

    Of ten there are six that train a dense model with FSDP2, one of them on the local cluster; two that train
    one with Megatron, and two that train a mixture of experts with it.
    """
    kind, row = number % 10, number // 10
    if kind < 5:
        model, shape, cluster = (
            _DENSE[(kind + row) % 3],
            _DENSE_SHAPES[(kind + row // 3) % 4],
            _CLUSTERS[(kind + row // 12) % 3],
        )
    elif kind == 5:
        model, shape, cluster = _SMALL[0], _DENSE_SHAPES[row % 4], _LOCAL
    elif kind < 8:
        model, shape, cluster = _SMALL[row % 2], _DENSE_MEGATRON[kind % 2], _CLUSTERS[row // 2 % 3]
    else:
        model, shape, cluster = _MIXTURES[kind % 2], _MIXTURE_SHAPES[row % 3], _LARGE_CLUSTERS[row // 3 % 2]
    name = f"g{number:04}"
    return GeneratedExperiment(
        name,
        {
            "BUILD.bazel": _build_file(name, number, model, cluster),
            "experiment.py": _source(name, number, model, shape, cluster),
        },
    )


def write_experiments(checkout: Path, numbers: range) -> list[GeneratedExperiment]:
    """Write the experiments of these numbers into a checkout and return them."""
    experiments = [generated_experiment(number) for number in numbers]
    for experiment in experiments:
        folder = checkout / FOLDER / experiment.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in experiment.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return experiments


def _build_file(name: str, number: int, model: _Model, cluster: _Cluster) -> str:
    return _BUILD_FILE.substitute(
        name=name,
        cluster=cluster.card,
        model=model.card,
        scale=("smoke", "full")[number % 2],
        evaluate_first=number // 2 % 2 == 1,
        version=f"2026.{1 + number // 28 % 12:02}.{1 + number % 28:02}",
    )


def _source(name: str, number: int, model: _Model, shape: _Shape, cluster: _Cluster) -> str:
    window, new_tokens = _WINDOWS[number // 7 % len(_WINDOWS)]
    hours, seconds = cluster.longest.split(", ")
    megatron = shape.parallel is not None
    return _SOURCE.substitute(
        title=f"Experiment {name}: {model.tokenizer} on {shape.nodes} nodes.",
        name=name,
        model=model.name,
        tokenizer=model.tokenizer,
        revision=model.revision,
        fingerprint=f"{0xC0FFEE00 + number:08x}",
        # A separate reference is loaded where a KL term needs it; every third run has one.
        kl=number % 3 == 0,
        estimator=_ESTIMATORS[number // 5 % 2],
        temperature=_TEMPERATURES[number // 2 % 3],
        backend=_megatron(shape) if megatron else _FSDP,
        strategy="megatron" if megatron else "fsdp2",
        profile="megatron" if megatron else "fsdp",
        rate=_RATES[number // 3 % 3],
        steps=_STEPS[number // 11 % 4],
        window=window,
        new_tokens=new_tokens,
        nodes=shape.nodes,
        policy_nodes=shape.policy_nodes,
        colocated=shape.colocated,
        engines=shape.engines,
        engine_tp=shape.engine_tp,
        engine_dp=shape.engine_dp,
        engine_ep=shape.engine_tp * shape.engine_dp if shape.engine_dp > 1 else 1,
        batch=32 * shape.policy_nodes,
        samples=_SAMPLES[number // 13 % 3],
        seed=17 + number,
        config=f"lib/iris/config/{cluster.card.replace('_', '-')}.yaml" if cluster.hub else "embedded",
        target="inputs.cluster.name" if cluster.hub else "None",
        parent=repr(cluster.hub).replace("'", '"'),
        cpu=48 if cluster.hub else 8,
        memory="1400GB" if megatron else "700GB",
        priority=("batch", "interactive")[number // 17 % 2],
        hours=hours,
        seconds=seconds,
    )


def _megatron(shape: _Shape) -> str:
    tp, pp, ep = shape.parallel or (1, 1, 1)
    return _MEGATRON.substitute(tp=tp, pp=pp, ep=ep, offload=not shape.colocated)


_BUILD_FILE = string.Template("""\
load("//tools/launcher:defs.bzl", "rl_experiment")

rl_experiment(
    name = "$name",
    cluster = "//third_party/clusters:$cluster",
    datasets = ["//third_party/datasets:gsm8k"],
    main = "experiment.py",
    models = ["//third_party/models:$model"],
    options = {
        "evaluate_first": $evaluate_first,
        "scale": "$scale",
    },
    runtime = "//third_party/marinskyrl:pinned",
    version = "$version",
    visibility = ["//visibility:public"],
)

# For the tests of texts. Not in `//...`, where it would be as many targets again as there are experiments.
filegroup(
    name = "sources",
    srcs = glob(["**"]),
    tags = ["manual"],
    visibility = ["//:__subpackages__"],
)
""")

_FSDP = """\
PARALLEL: dict[str, object] = {"policy": {"optimizer_config": {"lr": LEARNING_RATE}}}
"""

_MEGATRON = string.Template("""\
SIZES: dict[str, object] = {
    "tensor_model_parallel_size": $tp,
    "pipeline_model_parallel_size": $pp,
    "context_parallel_size": 1,
    "expert_model_parallel_size": $ep,
    "expert_tensor_parallel_size": 1,
}

PARALLEL: dict[str, object] = {
    "policy": {"optimizer_config": {"lr": LEARNING_RATE}, "megatron_config": SIZES},
    "ref": {"megatron_config": SIZES},
    "use_sample_packing": False,
    "offload_optimizer_during_rollouts": $offload,
}
""")

_SOURCE = string.Template('''\
"""$title"""

from typing import Literal

from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    ArtifactStep,
    BuildInputs,
    HfExport,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLSpec,
    SkyRLTopology,
    dataset,
    hf_model,
    rl_build_options,
    skyrl_step,
)

STEPS = {"smoke": 8, "full": $steps}
LEARNING_RATE = $rate

MODEL = HfExport(
    name="users/lab/sft/$name", version="2026.09.01", fingerprint="$fingerprint", relative_path="hf/final"
)
TOKENIZER_REVISION = "$revision"

OBJECTIVE: dict[str, object] = {
    "entrypoint": "standard",
    "environment": {"env_class": "gsm8k"},
    "trainer": {"algorithm": {"advantage_estimator": "$estimator", "use_kl_loss": $kl}},
    "generator": {"sampling_params": {"temperature": $temperature}},
}

$backend
BACKEND: dict[str, object] = {
    "trainer": {"strategy": "$strategy", "micro_forward_batch_size_per_gpu": 1, **PARALLEL},
    "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.7},
    "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}

LOGGING: dict[str, object] = {"trainer": {"logger": "console", "project_name": "$name"}}


def schedule(steps: int, evaluate_first: bool) -> dict[str, object]:
    """As many epochs as the steps need, with a checkpoint every quarter."""
    return {
        "data": {"kind": "parquet"},
        "trainer": {
            "epochs": max(1, -(-steps * $batch // 7000)),
            "max_steps": steps,
            "ckpt_interval": steps // 4,
            "resume_mode": "latest",
            "eval_before_train": evaluate_first,
        },
    }


@rl_build_options
def main(inputs: BuildInputs, scale: Literal["smoke", "full"], evaluate_first: bool) -> ArtifactStep:
    """Train and export."""
    gsm8k = inputs.dataset("gsm8k")
    data = dataset(gsm8k, gsm8k.export)
    spec = SkyRLSpec(
        name="users/lab/$name-rl",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective=OBJECTIVE,
            backend=BACKEND,
            logging=LOGGING,
            schedule=schedule(STEPS[scale], evaluate_first),
        ),
        context_budget=SkyRLContextBudget(
            request_window_tokens=$window,
            max_new_tokens_per_turn=$new_tokens,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("$profile"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("$model"), MODEL),
            tokenizer_uri="$tokenizer",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path=MODEL.relative_path,
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=SkyRLTopology(
            num_nodes=$nodes,
            gpus_per_node=8,
            gpu_variant="H100",
            role_plan=SkyRLRolePlan(
                colocate_all=$colocated,
                colocate_policy_ref=True,
                policy_num_nodes=$policy_nodes,
                reference_num_nodes=$policy_nodes,
                policy_num_gpus_per_node=8,
                num_inference_engines=$engines,
                inference_engine_tensor_parallel_size=$engine_tp,
                inference_engine_pipeline_parallel_size=1,
                inference_engine_data_parallel_size=$engine_dp,
                inference_engine_expert_parallel_size=$engine_ep,
                train_batch_size=$batch,
                policy_mini_batch_size=$batch,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=$samples,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=$seed,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="$config",
        cpu=$cpu,
        memory="$memory",
        disk="2TB",
        priority="$priority",
        max_retries=1,
        target_cluster=$target,
        parent_cluster_config=$parent,
        coordinator_timeout_hours=$hours,
        wandb_entity=None,
        job_timeout_seconds=$seconds,
        credentials=(),
    )
    return skyrl_step(spec, execution, export_hf=True)
''')
