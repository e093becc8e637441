"""Cases of the EXE checks on storage, environment variables, credentials and what is written out."""

from typing import Any

from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds
from tools.launcher.preflight.testing.experiments import model_step, placement, planned, rl_step
from tools.launcher.preflight.testing.subjects import DELETED, cluster_card, pinned_runtime

_CHECKPOINTS = "artifacts.checkpoint_root"
_EXPORTS = "artifacts.export_root"
_ATTEMPTS = "artifacts.attempts_root"
_RESOLVED = "artifacts.resolved_config_uri"
_TERMINAL = "artifacts.terminal_manifest_uri"
_KEPT = "artifacts.resume_checkpoint_count"
_RENDEZVOUS = "ray.rendezvous_dir"
_LOGS = "ray.log_dir"
_TIMEOUT = "iris.timeout"
_MEMORY = "iris.allocation.memory"
_DISK = "iris.allocation.disk"
_ENTITY = "iris.wandb_entity"
_ENV = "skyrl.extra_env"
_TASKS = "runtime.task_env"
_LOGGER = "skyrl.trainer.logger"
_PROJECT = "skyrl.trainer.project_name"
_INTERVAL = "skyrl.trainer.ckpt_interval"
_SHAPING = "skyrl.generator.trajectory_reward_shaping.enabled"
_RESUME = "skyrl.trainer.resume_mode"

_RUN = "marin/users/lab/tests/qwen06-gsm8k-rl/2026.09.21"
_BUCKET = "s3://marin-us-east-08a"
_OUTPUT = f"s3://marin-us-east-02a/{_RUN}"

# Made up: they have the form of the real ones, and are none.
_HF_TOKEN = "hf_" + "aB3" * 12
_API_KEY = "sk-" + "a1B2" * 8

_LARGE: dict[str, Any] = {"cluster": cluster_card(smoke_threshold_nodes=2, memory_per_node_gb=2014)}
_ABOVE = "8 nodes are above the smoke threshold of 2 on lab-cluster"


def _below(root: str) -> dict[str, Any]:
    """Everything temporary below `root`."""
    return {
        _CHECKPOINTS: f"{root}/skyrl/{_RUN}/checkpoints",
        _ATTEMPTS: f"{root}/skyrl/{_RUN}/attempts",
        _RENDEZVOUS: f"{root}/skyrl/{_RUN}/attempts/rendezvous",
        _LOGS: f"{root}/skyrl/{_RUN}/attempts/ray-logs",
    }


def _output(root: str) -> dict[str, Any]:
    """Everything durable below `root`."""
    return {
        _EXPORTS: f"{root}/exports",
        _RESOLVED: f"{root}/resolved-launch.yaml",
        _TERMINAL: f"{root}/terminal.json",
    }


def _env(**variables: Any) -> dict[str, Any]:
    return {_ENV: dict(variables), _TASKS: dict(variables)}


def _placed(**changes: Any) -> PlannedFrom:
    return planned(rl_step(model_step(), execution=placement(**changes)))


def _kept(ttl_days: int) -> PlannedFrom:
    return planned(rl_step(model_step(), ttl_days=ttl_days))


def _credentials(*names: str) -> PlannedFrom:
    return _placed(credentials=names)


FAILING = (
    Fails(
        check="EXE-11",
        changes={"skyrl.entrypoint": "terminal_bench"},
        planned=lambda: _credentials("WANDB_API_KEY"),
        says="DAYTONA_RL_API_KEY is needed; the execution declares the credentials WANDB_API_KEY, so only",
        severity="warning",
    ),
    Fails(
        check="EXE-12",
        planned=_credentials,
        says="needs WANDB_API_KEY; the execution declares no credentials",
        at="execution.credentials",
    ),
    Fails(
        check="EXE-12",
        changes={_LOGGER: DELETED},
        planned=lambda: _credentials("HF_TOKEN"),
        says="needs WANDB_API_KEY; the execution declares the credentials HF_TOKEN",
    ),
    Fails(
        check="EXE-12",
        changes={_ENTITY: None},
        says="wandb_entity is null: metrics would go to the WANDB_ENTITY of the launch host, else to 'dogml'",
        severity="warning",
    ),
    Fails(check="EXE-12", changes={_ENTITY: " "}, says="wandb_entity is ' '", severity="warning"),
    Fails(check="EXE-13", changes={_ENV: ["A=1"]}, says="extra_env is a list, not a mapping"),
    Fails(
        check="EXE-13",
        changes=_env(SKYRL_RUN_ID="x"),
        says="'SKYRL_RUN_ID': names that begin with SKYRL_ are reserved",
        at=f"{_ENV}.SKYRL_RUN_ID",
    ),
    Fails(check="EXE-13", changes={f"{_TASKS}.SKYRL_X": 1}, says="'SKYRL_X'", at=f"{_TASKS}.SKYRL_X"),
    Fails(
        check="EXE-14",
        changes={_CHECKPOINTS: f"{_BUCKET}/skyrl/checkpoints"},
        says="checkpoint_root 's3://marin-us-east-08a/skyrl/checkpoints' has no ttl component",
    ),
    Fails(
        check="EXE-14",
        changes={_ATTEMPTS: "gs://lab/attempts"},
        says="attempts_root 'gs://lab/attempts' has no",
    ),
    Fails(
        check="EXE-14",
        changes={_LOGS: "gs://lab/logs"},
        says="log_dir 'gs://lab/logs' has no ttl component",
        severity="warning",
    ),
    Fails(
        check="EXE-14",
        changes=_below(f"{_BUCKET}/tmp/ttl=0d"),
        says="attempts_root has the lifetime 'ttl=0d', which is no number of days above zero",
    ),
    Fails(
        check="EXE-14",
        changes=_below(f"{_BUCKET}/tmp/ttl=14"),
        says="checkpoint_root has the lifetime 'ttl=14', which is no number of days",
    ),
    Fails(
        check="EXE-14",
        changes=_below(f"{_BUCKET}/tmp/ttl=10d"),
        says="checkpoint_root has the lifetime ttl=10d, for which buckets have no rule; they have 1, 2, 3",
        severity="warning",
    ),
    Fails(
        check="EXE-14",
        changes=_below(f"{_BUCKET}/marin/tmp/ttl=14d"),
        says="the rules of buckets look at tmp/ttl=14d/ at their root only",
        severity="warning",
    ),
    Fails(
        check="EXE-14",
        changes=_output(f"{_BUCKET}/tmp/ttl=14d/{_RUN}"),
        says="is below ttl=14d: the result of the run would be deleted",
        at=_TERMINAL,
    ),
    Fails(
        check="EXE-14",
        changes=_output(f"s3://marin-us-east-02a/iris/{_RUN}"),
        says="has a component 'iris', below which Iris keeps its own files",
    ),
    Fails(
        check="EXE-15",
        changes=_below(f"{_BUCKET}/tmp/ttl=1d") | {_TIMEOUT: 43201},
        says="checkpoints live 1 day, shorter than timeout 12 hours times 2 tries",
        severity="warning",
    ),
    Fails(
        check="EXE-15",
        changes=_below(f"{_BUCKET}/tmp/ttl=30d") | {_TIMEOUT: 864_000, "iris.max_retries": DELETED},
        says="checkpoints live 30 days, shorter than timeout 240 hours times 4 tries",
        severity="warning",
    ),
    Fails(
        check="EXE-15",
        changes=_below(f"{_BUCKET}/tmp/ttl=1d"),
        planned=lambda: _placed(coordinator_timeout_hours=25),
        says="checkpoints live 1 day, shorter than coordinator_timeout_hours 25",
        severity="warning",
    ),
    Fails(check="EXE-16", changes={_KEPT: 0}, says="resume_checkpoint_count=0; allowed are 1 to 5"),
    Fails(check="EXE-16", changes={_KEPT: 6}, says="resume_checkpoint_count=6"),
    Fails(check="EXE-16", changes={_KEPT: "-1"}, says="resume_checkpoint_count=-1"),
    Fails(check="EXE-16", planned=lambda: _kept(0), says="temporary_storage_ttl_days=0 must be positive"),
    Fails(
        check="EXE-16",
        planned=lambda: _kept(60),
        says="temporary_storage_ttl_days=60 becomes 30",
        severity="warning",
    ),
    Fails(
        check="EXE-16",
        changes={"artifacts.draft_model_cache_ttl_days": 0},
        says="draft_model_cache_ttl_days=0 keeps the draft model for no time",
        severity="warning",
    ),
    Fails(
        check="EXE-17",
        facts={"cluster": cluster_card(region="us-east-02a")},
        says="checkpoints go to marin-us-east-08a while the job runs in us-east-02a",
        severity="warning",
    ),
    Fails(
        check="EXE-23",
        changes=_env(AWS_REGION="us-east-1"),
        says="'AWS_REGION' must not be set for the whole job: it would replace what the pod has for its storage",
    ),
    Fails(check="EXE-23", changes={f"{_TASKS}.R2_ENDPOINT": "x"}, says="'R2_ENDPOINT' must not be set"),
    Fails(
        check="EXE-23",
        changes=_env(GLOO_SOCKET_IFNAME="eth0"),
        says="'GLOO_SOCKET_IFNAME' must not be set for the whole job: it takes the name of one interface",
    ),
    *(
        Fails(check="EXE-25", changes=_env(**{name: "s3cr3t-value"}), says=f"'{name}' looks like a secret")
        for name in ("WANDB_API_KEY", "HF_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "hf_token", "APIKEY")
    ),
    Fails(
        check="EXE-26",
        changes=_output(f"s3://other/{_RUN}"),
        facts={"cluster": cluster_card(marin_prefix="s3://marin-us-east-02a/marin")},
        says="the plan writes export_root, resolved_config_uri, terminal_manifest_uri to 's3://other/marin/users",
        severity="warning",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_MEMORY: "auto"},
        facts=_LARGE,
        says=f"{_ABOVE}: write out {_MEMORY}. auto takes a share of what a node happens to offer",
    ),
    Fails(check="EXE-27", base="moe", changes={_DISK: "auto"}, facts=_LARGE, says=f"write out {_DISK}"),
    Fails(
        check="EXE-27",
        base="moe",
        planned=_placed,
        facts=_LARGE,
        says="write out execution.credentials. Nobody says which secrets the run needs",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_INTERVAL: DELETED},
        facts=_LARGE,
        says=f"write out {_INTERVAL}. The runtime would take 5",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_RESUME: DELETED},
        facts=_LARGE,
        says=f"write out {_RESUME}. The runtime would take 'latest'",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={"run.export_hf": DELETED},
        facts=_LARGE,
        says="write out run.export_hf. The launcher would take true",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_KEPT: DELETED},
        facts=_LARGE,
        says=f"write out {_KEPT}. The launcher would take 2",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_ENTITY: None},
        facts=_LARGE,
        says=f"write out {_ENTITY}. The launch host would decide",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_PROJECT: DELETED},
        facts=_LARGE,
        says=f"write out {_PROJECT}. The runtime would take 'skyrl'",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_SHAPING: True, "skyrl.context_budget.max_turns": 2},
        facts=_LARGE,
        says="write out skyrl.context_budget.generated_budget_fraction. The launcher would take 0.5",
    ),
    Fails(
        check="EXE-27",
        base="moe",
        changes={_SHAPING: True},
        facts=_LARGE,
        says="write out skyrl.context_budget.overlong_cache_fraction. The launcher would take 0.25",
    ),
    Fails(
        check="EXE-31",
        changes={_EXPORTS: "exports"},
        says="export_root 'exports' is a relative path, another place on every node",
    ),
    Fails(
        check="EXE-31", changes={_CHECKPOINTS: "s3:/lab/x"}, says="checkpoint_root 's3:/lab/x' is a relative"
    ),
    *(
        Fails(check="EXE-31", changes={path: f"{scheme}/tmp/skyrl/x"}, says="is on a disk of one node")
        for path in (_CHECKPOINTS, _EXPORTS)
        for scheme in ("", "file://")
    ),
    Fails(check="EXE-31", changes={_RENDEZVOUS: "s3:///x"}, says="rendezvous_dir 's3:///x' names no bucket"),
    Fails(
        check="EXE-31",
        changes={_ATTEMPTS: "s3://lab/../x"},
        says="attempts_root 's3://lab/../x' leaves its root with '..'",
    ),
    Fails(
        check="EXE-31",
        changes={_LOGS: "https://lab.org/logs"},
        says="log_dir 'https://lab.org/logs' is on https, which is not known as a store",
        severity="warning",
    ),
    Fails(
        check="EXE-32",
        changes={_TERMINAL: f"{_OUTPUT}/resolved-launch.yaml"},
        says="resolved_config_uri and terminal_manifest_uri are both",
    ),
    Fails(
        check="EXE-32",
        changes={_CHECKPOINTS: f"{_OUTPUT}/exports/"},
        says="checkpoint_root and export_root are both",
    ),
    Fails(
        check="EXE-32",
        changes={_EXPORTS: f"s3://marin-us-east-02a/{_RUN}.2/exports"},
        says="is not beside export_root",
        severity="warning",
    ),
    Fails(
        check="EXE-32",
        changes={"run.id": "users/lab/tests/other-2026.09.21"},
        says="is not that of the run 'users/lab/tests/other-2026.09.21'",
        at=_CHECKPOINTS,
        severity="warning",
    ),
    Fails(
        check="EXE-32",
        changes={_RENDEZVOUS: f"{_BUCKET}/tmp/ttl=14d/rendezvous"},
        says="rendezvous_dir 's3://marin-us-east-08a/tmp/ttl=14d/rendezvous' is not below attempts_root",
        severity="warning",
    ),
    Fails(
        check="EXE-34",
        changes={_TASKS: {"A": 3}},
        says="task_env and skyrl.extra_env differ in 'A', 'PYTORCH_CUDA_ALLOC_CONF'",
        severity="warning",
    ),
    Fails(
        check="EXE-34",
        changes={_ENV: DELETED},
        says="differ in 'PYTORCH_CUDA_ALLOC_CONF'",
        severity="warning",
    ),
    Fails(check="EXE-35", changes={_ENV: {"A=B": "1"}}, says="'A=B' cannot be the name of a variable"),
    Fails(check="EXE-35", changes={_ENV: {"": "1"}}, says="'' cannot be the name of a variable"),
    Fails(check="EXE-35", changes=_env(**{"1ST": "1"}), says="'1ST' is not a usual name", severity="warning"),
    Fails(check="EXE-35", changes=_env(A="x\0y"), says="the value of 'A' holds a NUL character"),
    Fails(
        check="EXE-35",
        changes=_env(A=["x"]),
        says="'A' is a list; a task would get its Python notation",
        severity="warning",
    ),
    Fails(
        check="EXE-36",
        changes=_env(WANDB_ENTITY="lab"),
        says="WANDB_ENTITY is always set by the launcher, which replaces this value; write iris.wandb_entity",
        severity="warning",
    ),
    Fails(
        check="EXE-36",
        changes=_env(MARIN_RL_CONFIG_B64="x"),
        says="MARIN_RL_CONFIG_B64 is",
        severity="warning",
    ),
    Fails(
        check="EXE-37",
        planned=lambda: _credentials("WANDB_API_KEY", _HF_TOKEN),
        says="credentials[1] of lab/run@2026.09.21 is not a name such as WANDB_API_KEY (39 characters, not shown here",
    ),
    Fails(
        check="EXE-37",
        planned=lambda: _credentials("wandb"),
        says="credentials[0] of lab/run@2026.09.21 is not",
    ),
    Fails(check="EXE-37", planned=lambda: _credentials("AKIA" + "A1B2" * 4), says="may be the secret itself"),
    Fails(
        check="EXE-37",
        planned=lambda: _credentials("AWS_SECRET_ACCESS_KEY"),
        says="is AWS_SECRET_ACCESS_KEY: it would replace what the pod has",
    ),
    Fails(
        check="EXE-38",
        changes={"skyrl.terminal_bench": {"agent": {"keys": ["x", _API_KEY]}}},
        says="skyrl.terminal_bench.agent.keys[1] holds what looks like an API key",
    ),
    Fails(
        check="EXE-38",
        changes=_env(HUB=f"token:{_HF_TOKEN}"),
        says=f"{_ENV}.HUB holds what looks like a Hugging Face token",
    ),
)

PASSING = (
    Passes(check="EXE-11"),
    Passes(
        check="EXE-11",
        changes={"skyrl.terminal_bench": {"harbor": {}}},
        planned=lambda: _credentials("DAYTONA_RL_API_KEY"),
    ),
    Passes(check="EXE-11", facts={"cluster": cluster_card(scheduler="embedded")}),
    Passes(check="EXE-11", changes={"iris.parent_cluster_config": None, "iris.cluster_config": "embedded"}),
    Passes(check="EXE-12"),
    Passes(check="EXE-12", planned=lambda: _credentials("WANDB_API_KEY")),
    Passes(check="EXE-12", changes={_LOGGER: "console", _ENTITY: None}, planned=_credentials),
    Passes(check="EXE-12", changes=_env(WANDB_MODE="offline") | {_ENTITY: None}, planned=_credentials),
    Passes(check="EXE-13"),
    Passes(check="EXE-13", changes=_env(MY_SKYRL_FLAG="1", SKYRL=1)),
    Passes(check="EXE-13", changes={_ENV: DELETED, _TASKS: DELETED}),
    Passes(check="EXE-14"),
    Passes(check="EXE-14", changes=_below("/shared/tmp") | _output("/shared/lab")),
    Passes(check="EXE-14", changes=_below("local://slipway/tmp") | _output("local://slipway/marin")),
    *(Passes(check="EXE-14", changes=_below(f"gs://lab/tmp/ttl={days}d")) for days in (1, 7, 30)),
    Passes(check="EXE-14", changes=_output("s3://iris/marin/iris-rl/2026.09.21")),
    Passes(check="EXE-15", changes=_below(f"{_BUCKET}/tmp/ttl=1d") | {_TIMEOUT: 43200}),
    Passes(check="EXE-15", changes={_CHECKPOINTS: "/shared/checkpoints"}),
    Passes(
        check="EXE-15",
        changes=_below(f"{_BUCKET}/tmp/ttl=1d") | {_TIMEOUT: 864_000},
        planned=lambda: _placed(coordinator_timeout_hours=24),
    ),
    *(Passes(check="EXE-16", changes={_KEPT: count}) for count in (1, 2, 5, "3", DELETED)),
    Passes(check="EXE-16", planned=lambda: _kept(30)),
    Passes(check="EXE-17", facts={"cluster": cluster_card(region="us-east-08a")}),
    Passes(check="EXE-17", changes=_below("local://slipway/tmp")),
    Passes(check="EXE-23"),
    Passes(check="EXE-23", changes={f"{_ENV}.AWS_PROFILE": None}),
    Passes(check="EXE-25"),
    Passes(
        check="EXE-25",
        changes=_env(TOKENIZERS_PARALLELISM="false", USE_API_KEY="0", HF_TOKEN="", NO_TOKEN=True),
    ),
    Passes(check="EXE-26", facts={"cluster": cluster_card(marin_prefix="s3://marin-us-east-02a/marin")}),
    Passes(check="EXE-27", base="moe", facts=_LARGE),
    Passes(check="EXE-27", base="moe", facts={"cluster": cluster_card(smoke_threshold_nodes=8)}),
    Passes(
        check="EXE-27",
        base="moe",
        changes={_MEMORY: "auto"},
        facts={"cluster": cluster_card(smoke_threshold_nodes=None)},
    ),
    Passes(
        check="EXE-27",
        base="moe",
        changes={_LOGGER: "console", _ENTITY: None, _PROJECT: DELETED},
        planned=_credentials,
        facts=_LARGE,
    ),
    Passes(check="EXE-31"),
    Passes(check="EXE-31", changes=_below("/shared/tmp") | _output("local://slipway/marin")),
    Passes(check="EXE-32"),
    Passes(check="EXE-32", base="moe"),
    Passes(check="EXE-32", changes=_below("/shared/tmp")),
    Passes(check="EXE-34"),
    Passes(check="EXE-34", changes={_ENV: {"A": 3, "B": True, "C": None}, _TASKS: {"A": "3", "B": "1"}}),
    Passes(
        check="EXE-34",
        changes={
            "skyrl.context_budget": DELETED,
            "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
            _ENV: DELETED,
        },
    ),
    Passes(check="EXE-35"),
    Passes(check="EXE-35", changes=_env(_A1="x", B=1, C=None)),
    Passes(check="EXE-36"),
    Passes(check="EXE-37", planned=_placed),
    Passes(check="EXE-37", planned=lambda: _credentials("WANDB_API_KEY", "HF_TOKEN")),
    Passes(check="EXE-38"),
    Passes(check="EXE-38", changes=_env(HF_TOKEN=_HF_TOKEN)),  # EXE-25 names it.
    Passes(check="EXE-38", changes={"run.id": "lab/task-sk-learn-with-a-rather-long-name-2026.09.21"}),
)

NOT_CHECKED = (
    NotChecked(
        check="EXE-12",
        changes={_ENTITY: None},
        runtime=lambda: pinned_runtime(wandb_entity_fallback=DELETED),
        needs="wandb_entity_fallback in the runtime manifest",
    ),
    NotChecked(
        check="EXE-14", changes={_EXPORTS: 7}, needs=f"a usable value: {_EXPORTS} as an address, it is 7"
    ),
    NotChecked(check="EXE-15", needs="a limit on how long the run takes: iris.timeout is 0"),
    NotChecked(check="EXE-17", needs="a cluster card with region"),
    NotChecked(
        check="EXE-17",
        changes=_below("s3://hero-checkpoints/tmp/ttl=14d"),
        facts={"cluster": cluster_card(region="us-east-02a")},
        needs="the region of the bucket hero-checkpoints",
    ),
    NotChecked(
        check="EXE-23",
        runtime=lambda: pinned_runtime(reserved_variables=DELETED),
        needs="reserved_variables in the runtime manifest",
    ),
    NotChecked(check="EXE-26", needs="a cluster card with marin_prefix"),
    NotChecked(check="EXE-27", base="moe", needs="a cluster card with smoke_threshold_nodes"),
    NotChecked(check="EXE-37", needs="the artifact graph"),
)

REMINDING = (
    Reminds(check="EXE-11", says="be logged in to marin, which takes the job"),
    Reminds(
        check="EXE-11",
        changes={"skyrl.entrypoint": "terminal_bench"},
        says="agentic recipe: DAYTONA_RL_API_KEY must be forwarded, or the host have a gcloud login",
    ),
    Reminds(check="EXE-12", says="WANDB_API_KEY must be forwarded: trainer.logger is wandb"),
)
