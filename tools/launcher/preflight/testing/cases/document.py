"""Cases of the DOC checks."""

from typing import Any

from tools.launcher.documents.strict_yaml import UnquotedKey
from tools.launcher.documents.two_readings import Reading
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.subjects import DELETED, document, pinned_runtime

_SECTIONS = tuple(document("smoke"))
_EMPTY = dict.fromkeys(_SECTIONS, DELETED)

_RESOLVED: dict[str, Any] = {
    "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
    "runtime.training_type": "sync",
    "skyrl.entrypoint": DELETED,
    "skyrl.context_budget": DELETED,
    "skyrl.trainer.seed": 17,
    "skyrl.trainer.export_hf_artifact": True,
    "skyrl.trainer.policy.model.path": "/tmp/marinskyrl/models/qwen06-sft",
    "skyrl.generator.engine_init_kwargs.served_model_name": "qwen06-sft",
    "skyrl.environment": {"env_class": "gsm8k"},
    "skyrl.trajectory_runner": {"process_pool": {"num_coordinators": 0}},
}
_COMPOSED: dict[str, Any] = _RESOLVED | {
    "runtime.entrypoint": "",
    "skyrl.trainer.ckpt_path": "s3://bucket/checkpoints",
    "skyrl.trainer.export_path": "s3://bucket/exports",
}
_EXPORT_MODULE = "skyrl_train.entrypoints.checkpoint_export"


def _resolved(**changes: Any) -> dict[str, Any]:
    return _RESOLVED | changes


def _module(name: str) -> str:
    return f"skyrl_train.entrypoints.{name}"


def _read(path: str, text: str, value: Any) -> dict[str, Any]:
    return {"two_readings": (Reading(path, text, value),)}


def _no_export() -> Any:
    return pinned_runtime(export_entrypoint=None)


def _other_version() -> Any:
    return pinned_runtime(schema_version=2)


def _no_fields() -> Any:
    return pinned_runtime(document_fields=None)


FAILING = (
    Fails(check="DOC-01", changes=_EMPTY, says="the document is an empty mapping"),
    Fails(
        check="DOC-02",
        changes={"launcher": {"x": 1}},
        says="the document has no key 'launcher'. Known: schema_version, run, runtime, iris, ingress, ray",
    ),
    Fails(
        check="DOC-02", changes={"trainer": {"epochs": 1}}, says="Near: skyrl.trainer, which is there as well"
    ),
    Fails(
        check="DOC-02",
        changes={"teachers": {}},
        says="no key 'teachers'. Near: skyrl.teachers",
        at="teachers",
    ),
    Fails(
        check="DOC-02",
        changes={"iris.nodes": 2},
        says="iris has no key 'nodes'. Near: iris.allocation.num_nodes, which is there as well",
        at="iris.nodes",
    ),
    Fails(
        check="DOC-02",
        changes={"runtime": DELETED, "Runtime": {"profile": "fsdp"}},
        says="the document has no key 'Runtime'. Did you mean runtime?",
    ),
    Fails(
        check="DOC-02",
        changes={"iris.cluster": DELETED, "iris.clustr": "x"},
        says="iris has no key 'clustr'. Did you mean cluster?",
    ),
    Fails(
        check="DOC-02",
        changes={"iris.allocation.max-retries": 1},
        says="iris.allocation has no key 'max-retries'. Near: iris.max_retries, which is there as well",
    ),
    Fails(
        check="DOC-02", changes={"inputs.model.name": "x"}, says="inputs.model has no key 'name'. Known: uri"
    ),
    Fails(check="DOC-02", changes={"ray." + "k" * 500: 1}, says="ray has no key 'kkkk"),
    Fails(
        check="DOC-02",
        changes={f"ray.extra{number:02}": 1 for number in range(30)},
        says="ray has 10 more unknown keys",
        at="ray",
    ),
    Fails(check="DOC-03", changes={"iris.cluster_config": DELETED}, says="iris.cluster_config is missing"),
    Fails(check="DOC-03", changes={"iris.cluster": None}, says="iris.cluster is null, it is mandatory"),
    Fails(check="DOC-03", changes={"run.id": "???"}, says="run.id is '???', it is mandatory"),
    Fails(
        check="DOC-03",
        changes={"ray": DELETED},
        says="ray is missing, it is mandatory. It has spill_dir, rendezvous_dir, log_dir",
    ),
    Fails(
        check="DOC-03",
        changes={"inputs.model": None},
        says="inputs.model is null, it is mandatory. It has uri",
    ),
    Fails(check="DOC-03", changes={"artifacts.export_root": ""}, says="artifacts.export_root is empty"),
    *(
        Fails(check="DOC-03", changes={path: "  "}, says=f"{path} is blank")
        for path in ("artifacts.export_root", "iris.cluster_config", "run.attempt_id", "ray.log_dir")
    ),
    Fails(check="DOC-03", changes={"skyrl": DELETED}, says="skyrl is missing"),
    Fails(
        check="DOC-04",
        changes={"iris.allocation.cpu": "many"},
        says="iris.allocation.cpu is 'many', not a number",
    ),
    Fails(check="DOC-04", changes={"iris.allocation.cpu": float("nan")}, says="is nan, not a finite number"),
    Fails(check="DOC-04", changes={"run.seed": True}, says="run.seed is true, not an integer"),
    Fails(check="DOC-04", changes={"run.seed": "9" * 5000}, says="not an integer"),
    Fails(check="DOC-04", changes={"ray.port": float("inf")}, says="ray.port is inf, not an integer"),
    # No OmegaConf from 2.1 to 2.4 makes an integer of a float, however whole: "could not be converted to Integer".
    *(
        Fails(check="DOC-04", changes={path: value}, says=f"{path} is {value}, not an integer")
        for path, value in (
            ("ray.port", 6379.0),
            ("ray.port", 6379.5),
            ("run.seed", 17.0),
            ("iris.timeout", 0.0),
            ("iris.max_retries", 1.5),
            ("artifacts.resume_checkpoint_count", 2.0),
        )
    ),
    Fails(check="DOC-04", changes={"run.export_hf": "2"}, says="reads it as true", severity="warning"),
    Fails(
        check="DOC-04",
        changes={"run.attempt_id": 123456789012},
        says="the launcher reads it as '123456789012'",
        severity="warning",
    ),
    Fails(
        check="DOC-04",
        # 12345678e901 without quotes: OmegaConf reads a float, PyYAML writes it without them.
        changes={"run.attempt_id": float("inf")},
        says="run.attempt_id is inf where the schema has text",
        severity="warning",
    ),
    *(
        Fails(check="DOC-04", changes={path: value}, says=f"the launcher reads it as '{value}'")
        for path, value in (("iris.cluster", False), ("inputs.model.uri", True), ("iris.wandb_entity", True))
    ),
    Fails(check="DOC-04", changes={"run.seed": None}, says="run.seed is null, which is no value for it"),
    Fails(check="DOC-04", changes={"run.export_hf": "maybe"}, says="is 'maybe', not true or false"),
    Fails(check="DOC-04", changes={"run.export_hf": 1.0}, says="is 1.0, not true or false"),
    Fails(check="DOC-04", changes={"iris.cluster": ["a"]}, says="iris.cluster is a list, not text"),
    Fails(check="DOC-04", changes={"run.id": 10**20000}, says="beyond all limits, not text"),
    Fails(
        check="DOC-04",
        changes={"iris.allocation": 8},
        says="iris.allocation is 8, not a mapping with num_nodes",
    ),
    Fails(check="DOC-04", changes={"ingress": None}, says="ingress is null, not a mapping with mode"),
    Fails(check="DOC-04", changes={"skyrl": "recipe"}, says="skyrl is 'recipe', not a mapping"),
    Fails(check="DOC-04", changes={"runtime.task_env": ["A"]}, says="not a mapping of text to text"),
    Fails(check="DOC-04", changes={"runtime.task_env.A": None}, says="runtime.task_env.A is null, not text"),
    Fails(
        check="DOC-04",
        changes={"runtime.task_env.A": {"b": 1}},
        says="runtime.task_env.A is a mapping, not text",
    ),
    Fails(
        check="DOC-04",
        changes={"runtime.task_env.A": True},
        says="is a boolean; the launcher writes it as 'True'",
        severity="warning",
    ),
    Fails(
        check="DOC-04",
        changes={"iris.timeout": "86_400"},
        says="is '86_400' where the schema has an integer; the launcher reads it as 86400",
        severity="warning",
    ),
    Fails(
        check="DOC-04",
        changes={"ray.port": "6379"},
        says="is '6379' where the schema has an integer; the launcher reads it as 6379",
        severity="warning",
    ),
    Fails(check="DOC-04", changes={"iris.allocation.cpu": "48"}, says="reads it as 48.0", severity="warning"),
    Fails(check="DOC-04", changes={"run.export_hf": "Yes"}, says="reads it as true", severity="warning"),
    Fails(check="DOC-04", changes={"run.export_hf": 0}, says="reads it as false", severity="warning"),
    Fails(
        check="DOC-04",
        changes={"iris.cluster": 7},
        says="has text; the launcher reads it as '7'",
        severity="warning",
    ),
    Fails(
        check="DOC-05", changes={"schema_version": True}, says="schema_version is true, the launcher knows 1"
    ),
    Fails(check="DOC-05", changes={"schema_version": 2}, says="schema_version is 2, the launcher knows 1"),
    Fails(check="DOC-05", changes={"schema_version": 1.5}, says="schema_version is 1.5"),
    Fails(
        check="DOC-05", changes={"schema_version": 1.0}, says="schema_version is 1.0, the launcher knows 1"
    ),
    Fails(check="DOC-05", changes={"schema_version": [1]}, says="schema_version is a list"),
    Fails(
        check="DOC-05",
        changes={"schema_version": "1"},
        says="'1', the launcher knows 1 and converts",
        severity="warning",
    ),
    Fails(check="DOC-05", runtime=_other_version, says="schema_version is 1, the launcher knows 2"),
    Fails(
        check="DOC-06",
        changes={"iris.cluster_config": "${oc.env:HOME}/c.yaml"},
        says="which the launcher resolves on its host",
        severity="warning",
    ),
    Fails(
        check="DOC-06",
        changes={"runtime.task_env.A": "${run.id}"},
        says="runtime.task_env.A is '${run.id}'",
        severity="warning",
    ),
    Fails(
        check="DOC-07",
        changes={"runtime.training_type": "async"},
        says="training_type is 'async', from entry point standard follows 'sync'; the launcher overwrites it",
        severity="warning",
    ),
    Fails(
        check="DOC-07",
        changes=_resolved(**{"runtime.training_type": "async"}),
        says="training_type is 'async', from entry point standard follows 'sync'",
    ),
    Fails(
        check="DOC-07",
        changes=_resolved(**{"run.mode": "checkpoint_export", "runtime.entrypoint": _EXPORT_MODULE}),
        says=f"training_type is 'sync', from entry point {_EXPORT_MODULE} follows null",
    ),
    Fails(
        check="DOC-07",
        changes=_resolved(**{"runtime.entrypoint": _module("main_generate")}),
        says="from entry point generate follows null",
    ),
    Fails(
        check="DOC-07",
        changes=_resolved(
            **{
                "runtime.entrypoint": _module("terminal_bench"),
                "skyrl.trainer.placement.colocate_all": False,
            }
        ),
        says="follows 'async'",
    ),
    Fails(
        check="DOC-08",
        changes=_resolved(**{"runtime.entrypoint": _module("main")}),
        says="module 'skyrl_train.entrypoints.main' is not registered. Registered: skyrl_train.",
    ),
    Fails(
        check="DOC-08",
        changes={"runtime.entrypoint": _module("main_base")},
        says="a source document names the module",
        severity="warning",
    ),
    Fails(
        check="DOC-04",
        changes={"runtime.task_env": {UnquotedKey("false"): "x", "B": "y"}},
        says="runtime.task_env has the key false without quotes, a number or boolean where the schema has text",
        at="runtime.task_env.false",
    ),
    Fails(
        check="DOC-08",
        changes=_COMPOSED,
        says="a resolved document names its module, and this one has none",
    ),
    Fails(
        check="DOC-08",
        changes=_COMPOSED | {"run.mode": "checkpoint_export"},
        says=f"no skyrl.context_budget. Modules: {_EXPORT_MODULE}",
    ),
    Fails(
        check="DOC-08",
        changes=_COMPOSED | {"run.mode": "checkpoint_export"},
        runtime=_no_export,
        says=f"Modules: {_module('main_base')}",
    ),
    Fails(
        check="DOC-08",
        changes=_resolved(**{"runtime.entrypoint": _EXPORT_MODULE}),
        says="exports a checkpoint and is not registered for training, but run.mode is 'train'",
    ),
    Fails(
        check="DOC-08",
        changes=_resolved(**{"run.mode": "checkpoint_export"}),
        says="run.mode is checkpoint_export, which module 'skyrl_train.entrypoints.checkpoint_export' does",
        severity="warning",
    ),
    Fails(
        check="DOC-10",
        facts=_read("skyrl.trainer.placement.colocate_all", "yes", True),
        says="colocate_all is yes without quotes. The launcher reads YAML 1.1, so it has true; a reader of YAML 1.2",
        at="skyrl.trainer.placement.colocate_all",
        severity="warning",
    ),
    Fails(check="DOC-10", facts=_read("iris.timeout", "08", "08"), says="it has '08'", severity="warning"),
    Fails(check="DOC-10", facts=_read("iris.cluster", "no", False), says="has false", severity="warning"),
    Fails(check="DOC-10", facts=_read("runtime.task_env.A", "1_0", 10), says="has 10", severity="warning"),
    Fails(
        check="DOC-10",
        facts=_read("skyrl.trainer.strategy", "on", True),
        runtime=lambda: None,
        says="has true",
        severity="warning",
    ),
    Fails(
        check="DOC-11",
        changes={"skyrl.trainer.project_name": "${"},
        says="skyrl.trainer.project_name is '${': the interpolation that ${ opens has no end",
    ),
    Fails(check="DOC-11", changes={"run.id": "a ${b} ${c"}, says="run.id is 'a ${b} ${c'"),
    Fails(check="DOC-11", changes={"runtime.task_env.A": "${a:{b: 1}"}, says="has no end"),
    Fails(check="DOC-11", changes={"skyrl.trainer.logger": ["\\\\${"]}, says="skyrl.trainer.logger[0] is"),
    Fails(check="DOC-11", changes={"skyrl.trainer.run_name": "x" * 20_000 + "${a"}, says="has no end"),
    Fails(
        check="DOC-14",
        changes={"skyrl.generator.engine_init_kwargs.kv_cache_dtype": "???"},
        says="engine_init_kwargs.kv_cache_dtype is ???, a value that is still to be set",
    ),
    Fails(check="DOC-14", changes={"skyrl.trainer.logger": ["???"]}, says="logger[0] is ???"),
    Fails(check="DOC-14", changes={"run.seed": "???"}, says="run.seed is ???"),
    Fails(check="DOC-14", changes=_resolved(**{"skyrl.trainer.run_name": "???"}), says="run_name is ???"),
    Fails(
        check="DOC-15",
        changes={"skyrl.trainer.ref.model.path": "${trainer.policy.model.path}"},
        says="the launcher looks for trainer.policy.model.path at the top of the launch document, and it is not there",
    ),
    Fails(
        check="DOC-15",
        changes={"skyrl.trainer.project_name": "a-${skyrl.trainer.strategy}"},
        says="the launcher looks for skyrl.trainer.strategy in the composed tree, and it is not there",
    ),
    Fails(
        check="DOC-15",
        changes={"skyrl.trainer.project_name": "${iris.job_name}"},
        says="in the composed tree",
    ),
    Fails(
        check="DOC-15",
        changes={"runtime.task_env.A": "${HOME}/a"},
        says="task_env.A is '${HOME}/a': the launcher looks for HOME at the top",
    ),
    Fails(
        check="DOC-15",
        changes=_resolved(**{"runtime.task_env.A": "${trainer.strategy}"}),
        says="the launcher looks for trainer.strategy at the top",
    ),
    Fails(
        check="DOC-12",
        changes=_resolved(**{"skyrl.generator": DELETED, "skyrl.environment": None}),
        says="a resolved document has the full tree; skyrl lacks environment, generator",
    ),
    *(
        Fails(
            check="DOC-12",
            changes=_resolved(**{f"skyrl.{path}": value}),
            says=f"has skyrl.{path}, from which the launcher derives the roles; it is {word}",
            at=f"skyrl.{path}",
        )
        for path, value, word in (
            ("trainer.placement.colocate_all", DELETED, "missing"),
            ("trainer.placement.policy_num_gpus_per_node", DELETED, "missing"),
            ("generator.num_inference_engines", None, "null"),
            ("generator.backend", None, "null"),
        )
    ),
    Fails(
        check="DOC-13",
        changes={"inputs.data_kind": "tasks"},
        says="inputs.data_kind is 'tasks'; the launcher overwrites it from skyrl.data.kind, which is 'parquet'",
        severity="warning",
    ),
    Fails(
        check="DOC-13",
        changes={"skyrl.data.kind": DELETED},
        says="which is left out and defaults to 'tasks'",
        severity="warning",
    ),
    Fails(check="DOC-13", changes={"skyrl.data": None}, says="is left out and defaults", severity="warning"),
    Fails(
        check="DOC-09",
        changes=_resolved(**{"skyrl.trainer.seed": 18}),
        says="skyrl.trainer.seed is 18, from run.seed follows 17",
    ),
    Fails(
        check="DOC-09",
        changes=_resolved(**{"skyrl.trainer.export_hf_artifact": 1}),
        says="export_hf_artifact is 1, from run.export_hf follows true",
        severity="warning",
    ),
    Fails(
        check="DOC-09",
        changes=_resolved(**{"skyrl.generator.engine_init_kwargs.served_model_name": "other"}),
        says="served_model_name is 'other', from inputs.model.local_path follows 'qwen06-sft'",
        severity="warning",
    ),
)

PASSING = (
    *(Passes(check=f"DOC-{number:02}", base=base) for number in range(1, 16) for base in ("smoke", "moe")),
    *(Passes(check=f"DOC-{number:02}", changes=_RESOLVED) for number in range(1, 16)),
    Passes(check="DOC-02", changes={"ingress": {"mode": "direct"}, "runtime.task_env.ANY": "x"}),
    Passes(check="DOC-02", changes={"skyrl.surprise": 1}),
    Passes(check="DOC-03", changes={"run.seed": DELETED, "ingress": DELETED, "iris.wandb_entity": None}),
    Passes(check="DOC-03", changes={"inputs.model.identity": ""}),
    Passes(check="DOC-03", changes={"runtime": DELETED, "Runtime": {}}),
    Passes(check="DOC-03", changes={"iris.allocation": 8}),
    Passes(check="DOC-04", changes={"runtime.task_env.N": 1, "runtime.task_env.F": 0.5}),
    Passes(check="DOC-04", changes={"iris.allocation.cpu": 47.5, "inputs.model.chat_template": "x"}),
    Passes(check="DOC-04", changes={"iris.timeout": "${x}", "run.seed": "???", "iris": None}),
    Passes(check="DOC-05", changes={"schema_version": DELETED}),
    Passes(check="DOC-07", changes={"runtime.training_type": "sync"}),
    Passes(check="DOC-07", changes={"runtime.training_type": None}),
    Passes(
        check="DOC-07",
        changes=_resolved(**{"runtime.entrypoint": _module("fully_async"), "runtime.training_type": "async"}),
    ),
    Passes(check="DOC-07", changes={"skyrl.entrypoint": "nothing", "runtime.training_type": "sync"}),
    Passes(
        check="DOC-08",
        changes=_resolved(**{"run.mode": "checkpoint_export", "runtime.entrypoint": _EXPORT_MODULE}),
    ),
    Passes(check="DOC-08", changes=_resolved(**{"run.mode": "checkpoint_export"}), runtime=_no_export),
    Passes(check="DOC-06", changes={"run.id": "${"}),
    Passes(check="DOC-09", changes={"skyrl.trainer.seed": 18}),
    *(
        Passes(check="DOC-11", changes={"skyrl.trainer.project_name": text})
        for text in (
            "${a}",
            "${ a }b}",
            "{a",
            "$ {",
            "${${a}}",
            "${a:{b: 1}}",
            "\\${a",
            "${a:'{'}",
            '${a:"}"',
            "${" + "}" * 20_000,
        )
    ),
    Passes(check="DOC-14", changes={"skyrl.trainer.project_name": "what???", "run.id": "???"}),
    *(
        Passes(check="DOC-15", changes={"skyrl.trainer.project_name": text})
        for text in ("${oc.env:HOME}", "${.strategy}", "\\${HOME}", "${a:{b}}", "'${a}'", "${a[0]}", "{HOME}")
    ),
    Passes(check="DOC-15", changes={"run.id": "${iris.job_name}"}),
    Passes(check="DOC-15", changes={"skyrl.extra_env.A": "${run.id}"}),
    *(
        Passes(check="DOC-15", changes=_resolved(**{"skyrl.trainer.run_name": text}))
        for text in ("${skyrl.trainer.strategy}", "${trainer.strategy}")
    ),
    Passes(check="DOC-12", changes={"skyrl.environment": DELETED, "skyrl.generator.backend": DELETED}),
    Passes(check="DOC-12", changes=_resolved(**{"skyrl.trainer.algorithm.use_kl_loss": None})),
    Passes(
        check="DOC-12",
        changes=_resolved(
            **{
                "skyrl.trainer.placement.ref_num_nodes": DELETED,
                "skyrl.generator.inference_engine_data_parallel_size": DELETED,
            }
        ),
    ),
    Passes(
        check="DOC-07",
        changes=_resolved(
            **{
                "run.mode": "checkpoint_export",
                "runtime.entrypoint": _EXPORT_MODULE,
                "runtime.training_type": None,
            }
        ),
    ),
    Passes(check="DOC-12", changes={"skyrl": 3, "runtime.entrypoint": _module("main_base")}),
    Passes(check="DOC-13", changes={"inputs.data_kind": DELETED}),
    Passes(check="DOC-13", changes={"inputs.data_kind": "csv"}),
    Passes(check="DOC-13", changes={"inputs.data_kind": ["tasks"]}),
    Passes(check="DOC-13", changes={"skyrl.data.kind": {"a": 1}}),
    Passes(check="DOC-13", changes={"skyrl.data": [1]}),
    Passes(check="DOC-13", changes={"inputs.data_kind": "tasks", "skyrl.data.kind": "tasks"}),
)

NOT_CHECKED = (
    *(
        NotChecked(
            check=f"DOC-{number:02}", runtime=_no_fields, needs="document_fields in the runtime manifest"
        )
        for number in (2, 3, 4, 6)
    ),
    *(
        NotChecked(check=f"DOC-{number:02}", runtime=lambda: None, needs="a runtime manifest")
        for number in (2, 3, 4, 5, 6)
    ),
    NotChecked(check="DOC-12", changes=_RESOLVED, runtime=lambda: None, needs="a runtime manifest"),
    NotChecked(
        check="DOC-07",
        changes={"runtime.training_type": "sync"},
        runtime=lambda: None,
        needs="a runtime manifest",
    ),
    NotChecked(
        check="DOC-08",
        changes={"runtime.entrypoint": _module("main")},
        runtime=lambda: None,
        needs="a runtime manifest",
    ),
)
