"""Cases of the EXE checks on routes, nodes, priorities, names, the network and limits."""

from typing import Any

from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds
from tools.launcher.preflight.testing.experiments import model_step, placement, planned, rl_step, step
from tools.launcher.preflight.testing.subjects import DELETED, cluster_card, pinned_runtime

_CLUSTER = "iris.cluster"
_CONFIG = "iris.cluster_config"
_TARGET = "iris.target_cluster"
_PARENT = "iris.parent_cluster_config"
_TIMEOUT = "iris.timeout"
_RETRIES = "iris.max_retries"
_PRIORITY = "iris.priority"
_JOB = "iris.job_name"
_ATTEMPT = "run.attempt_id"
_NODES = "iris.allocation.num_nodes"
_WIDTH = "iris.allocation.gpus_per_node"
_VARIANT = "iris.allocation.gpu_variant"
_CPU = "iris.allocation.cpu"
_MEMORY = "iris.allocation.memory"
_DISK = "iris.allocation.disk"
_MODE = "ingress.mode"
_HOST = "ingress.host"
_HTTP_PORT = "ingress.vllm_http_port"
_PORT = "ray.port"
_BACKEND = "ray.spill_backend"
_SPILL = "ray.spill_dir"
_RENDEZVOUS = "ray.rendezvous_dir"
_ENV = "skyrl.extra_env"
_TASKS = "runtime.task_env"
_POLICY_WIDTH = "skyrl.trainer.placement.policy_num_gpus_per_node"
_IFNAME = "NCCL_SOCKET_IFNAME"

_MARIN = "lib/iris/config/marin.yaml"
_MARIN_DEV = "lib/iris/config/marin-dev.yaml"
_EXCLUSION = "^ibs,ibp,lo,docker,veth,cilium,lxc"
_DIRECT: dict[str, Any] = {_TARGET: None, _PARENT: None}
_H100 = cluster_card(
    gpu_variant="H100", gpus_per_node=8, cpu_per_node=128, memory_per_node_gb=2014, disk_per_node_gb=28610.56
)
_GB200 = cluster_card(gpu_variant="GB200", gpus_per_node=4)
_LOCAL = cluster_card(scheduler="embedded", gpu_variant="H100", gpus_per_node=8)
_BUDGET = cluster_card(node_cost=10688, default_user_budget=42752)


def _to(cluster: str, parent: str | None = _MARIN) -> dict[str, Any]:
    target = cluster if parent is not None else None
    return {
        _CLUSTER: cluster,
        _CONFIG: f"lib/iris/config/{cluster}.yaml",
        _TARGET: target,
        _PARENT: parent,
    }


def _placed(**changes: Any) -> PlannedFrom:
    return planned(rl_step(model_step(), execution=placement(**changes)))


def _two(**changes: Any) -> PlannedFrom:
    second = rl_step(model_step(), name="lab/second", execution=placement(**changes))
    return planned(rl_step(model_step()), second)


def _evaluated(stage: str | None, **facts: Any) -> PlannedFrom:
    run = rl_step(model_step(), export_hf=True)
    return planned(step("lab/score", kind="evaluate", deps=(run,), **facts), stage=stage)


def _size(path: str, text: Any, says: str) -> Fails:
    return Fails(check="EXE-04", changes={path: text}, says=says, at=path)


FAILING = (
    Fails(
        check="EXE-01",
        changes={_PARENT: None},
        says="target_cluster 'cw-us-east-02a' is set without parent_cluster_config",
    ),
    Fails(check="EXE-01", changes={_PARENT: " "}, says="is set without parent_cluster_config"),
    Fails(
        check="EXE-01", changes={_TARGET: ""}, says=f"parent_cluster_config '{_MARIN}' is set without target"
    ),
    Fails(check="EXE-01", changes={_TARGET: DELETED}, says="is set without target_cluster"),
    Fails(
        check="EXE-01",
        changes={_TARGET: "cw-rno2a"},
        says="target_cluster 'cw-rno2a' is not the cluster 'cw-us-east-02a'",
    ),
    Fails(check="EXE-01", changes={_CLUSTER: ""}, says="is not the cluster ''"),
    Fails(check="EXE-01", changes={_TIMEOUT: -1}, says="timeout=-1 seconds is negative"),
    Fails(check="EXE-01", changes={_TIMEOUT: "-60"}, says="timeout=-60 seconds is negative"),
    Fails(
        check="EXE-01",
        planned=lambda: _placed(coordinator_timeout_hours=0),
        says="coordinator_timeout_hours=0 must be positive",
        at="lab/run@2026.09.21",
    ),
    Fails(check="EXE-02", planned=lambda: planned(step("a")), says="the graph has no RL step"),
    Fails(
        check="EXE-02",
        planned=lambda: _two(priority="interactive"),
        says="the steps use the priorities 'batch' (lab/run@2026.09.21) and 'interactive' (lab/second@2026.09.21)",
    ),
    Fails(
        check="EXE-02",
        planned=lambda: _two(target_cluster=None, parent_cluster_config=None),
        says="'lib/iris/config/cw-us-east-02a.yaml' directly (lab/second@2026.09.21)",
    ),
    Fails(
        check="EXE-03",
        changes={_PRIORITY: "interactiv"},
        says="priority 'interactiv' is unknown. Known: system, production, interactive, batch",
    ),
    Fails(check="EXE-03", changes={_PRIORITY: ""}, says="priority '' is unknown"),
    Fails(check="EXE-03", changes={_PRIORITY: 2}, says="priority '2' is unknown"),
    Fails(
        check="EXE-03", changes={_PRIORITY: "Batch"}, says="'Batch' is written 'batch'", severity="warning"
    ),
    Fails(
        check="EXE-03",
        changes={_PRIORITY: "SYSTEM"},
        says="'SYSTEM' is written 'system'",
        severity="warning",
    ),
    Fails(check="EXE-03", changes={_PRIORITY: "inherit"}, says="is Iris' own word", severity="warning"),
    Fails(
        check="EXE-03",
        changes={_PRIORITY: "production"},
        facts={"cluster": cluster_card(default_highest_band="interactive")},
        says="'production' is for administrators; the highest band of a user on lab-cluster is interactive",
        severity="warning",
    ),
    Fails(
        check="EXE-03",
        changes={_PRIORITY: "interactive"},
        facts={"cluster": cluster_card(default_highest_band="batch")},
        says="'interactive' is for administrators; the highest band of a user on lab-cluster is batch",
        severity="warning",
    ),
    _size(
        _MEMORY,
        "lots",
        "memory 'lots' is not a size that Iris reads. Write a number with its unit, such as 700GB",
    ),
    _size(_DISK, "TB", "disk 'TB' is not a size"),
    _size(_MEMORY, "", "memory '' is not a size"),
    _size(_MEMORY, "0GB", "memory '0GB' asks for nothing"),
    _size(_DISK, 0, "disk '0' asks for nothing"),
    _size(_MEMORY, "-5GB", "'-5GB' is not a size"),
    _size(_MEMORY, "7e2GB", "'7e2GB' is not a size"),
    _size(_MEMORY, "AUTO", "'AUTO' is not a size"),
    Fails(
        check="EXE-05",
        changes={_MEMORY: "4000GB"},
        facts={"cluster": _H100},
        says="memory 4000GB is 4000 GiB for Iris and exceeds the 2014 GiB that a node of lab-cluster (H100) can give",
    ),
    Fails(
        check="EXE-05", changes={_MEMORY: "2TB"}, facts={"cluster": _H100}, says="memory 2TB is 2048 GiB for"
    ),
    Fails(
        check="EXE-05",
        changes={_DISK: "28TB"},
        facts={"cluster": cluster_card(disk_per_node_gb=28610.56)},
        says="disk 28TB is 28672 GiB for Iris and exceeds the 28610.56 GiB that a node of lab-cluster can give",
    ),
    Fails(check="EXE-05", changes={_CPU: -4}, says="cpu=-4 must be a positive number"),
    Fails(check="EXE-05", changes={_CPU: "0"}, says="cpu=0 must be a positive number"),
    Fails(check="EXE-05", changes={_CPU: float("nan")}, says="cpu=nan must be a positive number"),
    Fails(check="EXE-05", changes={_CPU: float("inf")}, says="cpu=inf must be a positive number"),
    Fails(
        check="EXE-05",
        changes={_CPU: 129},
        facts={"cluster": _H100},
        says="cpu=129 exceeds the 128 CPUs of a node of lab-cluster (H100)",
    ),
    Fails(
        check="EXE-06",
        facts={"cluster": _GB200},
        says="the nodes of lab-cluster have 4 GPUs, gpus_per_node=8",
        at=_WIDTH,
    ),
    Fails(
        check="EXE-06",
        facts={"cluster": _GB200},
        says="the nodes of lab-cluster have GB200 GPUs, gpu_variant='H100'",
        at=_VARIANT,
    ),
    Fails(
        check="EXE-06",
        changes={_WIDTH: 4, _POLICY_WIDTH: 4},
        facts={"cluster": _H100},
        says="the nodes of lab-cluster have 8 GPUs, gpus_per_node=4",
    ),
    Fails(
        check="EXE-06",
        changes={_WIDTH: 16, _POLICY_WIDTH: 16},
        facts={"cluster": _LOCAL},
        says="have 8 GPUs, gpus_per_node=16",
    ),
    Fails(
        check="EXE-06",
        changes={_VARIANT: "h100"},
        facts={"cluster": _H100},
        says="gpu_variant='h100'; it is written 'H100'",
        severity="warning",
    ),
    Fails(check="EXE-07", changes={_JOB: " "}, says="job_name ' ' is blank"),
    Fails(check="EXE-07", changes={_JOB: "users/lab/run"}, says="job_name 'users/lab/run' holds a '/'"),
    Fails(
        check="EXE-07",
        changes={_JOB: "Lab Run"},
        says="'Lab Run' is not sanitised; Marin would call the job 'lab-run'",
        severity="warning",
    ),
    # runtime-facts.yaml: nested_name_must_not_be_an_integer; the job is nested below its coordinator.
    Fails(check="EXE-07", changes={_JOB: "2026"}, says="job_name '2026' is a number"),
    Fails(
        check="EXE-07",
        changes={_JOB: "x" * 64},
        says="the job name has 64 characters, pods and labels take 63",
        severity="warning",
    ),
    Fails(
        check="EXE-07",
        planned=lambda: planned(rl_step(model_step(), name="a/b"), rl_step(model_step(), name="a-b")),
        says="a/b@2026.09.21 and a-b@2026.09.21 both become jobs called 'a-b-2026.09.21'",
    ),
    Fails(
        check="EXE-08",
        changes={"run.mode": "eval"},
        says="run.mode 'eval' is unknown. Known: train, checkpoint",
    ),
    Fails(
        check="EXE-08",
        changes={"run.submission": "waits"},
        says="run.submission 'waits' is unknown. Known: prepare, detach, wait",
    ),
    Fails(check="EXE-08", changes={"ingress": {"mode": ["direct"]}}, says="ingress.mode a list is unknown"),
    Fails(check="EXE-08", changes={"run.mode": "Train"}, says="run.mode 'Train' is unknown"),
    Fails(
        check="EXE-08",
        changes={"run.mode": "checkpoint_export"},
        says="run.mode checkpoint_export needs a resolved document",
    ),
    Fails(check="EXE-09", changes={_PORT: 70000}, says="ray.port=70000 is no port; ports are 1 to 65535"),
    Fails(check="EXE-09", changes={_PORT: "0"}, says="ray.port=0 is no port"),
    Fails(
        check="EXE-09",
        changes={"ray.rendezvous_timeout": 0},
        says="ray.rendezvous_timeout=0 seconds must be positive",
    ),
    Fails(
        check="EXE-09",
        changes={"ray.cluster_join_timeout": -1},
        says="ray.cluster_join_timeout=-1 seconds must be positive",
    ),
    Fails(
        check="EXE-09",
        changes={"ray.driver_liveness_timeout": -1},
        says="ray.driver_liveness_timeout=-1 seconds must be 0 or more",
    ),
    Fails(
        check="EXE-09", changes={_BACKEND: "gcs"}, says="ray.spill_backend 'gcs' is unknown. Known: local, r2"
    ),
    Fails(check="EXE-09", changes={_SPILL: "spill"}, says="ray.spill_dir 'spill' must be an absolute path"),
    Fails(
        check="EXE-09",
        changes={_SPILL: "file:///tmp/spill", _BACKEND: DELETED},
        says="ray.spill_dir 'file:///tmp/spill' must be an absolute path",
    ),
    Fails(
        check="EXE-09",
        changes={_BACKEND: "r2", _RENDEZVOUS: "gs://b/r"},
        says="ray.rendezvous_dir 'gs://b/r' must begin with s3://",
    ),
    Fails(
        check="EXE-10",
        changes=_DIRECT | {_MODE: "controller"},
        says="controller ingress on cw-us-east-02a needs submission through the hub",
    ),
    Fails(
        check="EXE-10",
        changes=_to("cw-new", None) | {_MODE: "controller"},
        says="controller ingress on cw-new needs submission through the hub",
    ),
    Fails(
        check="EXE-10",
        changes={_MODE: "controller", _HOST: "example.org"},
        says="uses the host iris.oa.dev, ingress.host is 'example.org'",
    ),
    Fails(
        check="EXE-10",
        changes=_to("lab", None) | {_MODE: "controller", _HOST: "example.org"},
        facts={"cluster": cluster_card(public_host="iris.lab.org")},
        says="controller ingress on lab uses the dashboard iris.lab.org, ingress.host is 'example.org'",
    ),
    Fails(
        check="EXE-10",
        changes=_to("lab", None) | {_MODE: "controller"},
        facts={"cluster": cluster_card(public_host="iris.lab.org")},
        says="ingress.host is null",
        severity="warning",
    ),
    Fails(
        check="EXE-18",
        changes={_HTTP_PORT: 6379},
        says="ray.port and ingress.vllm_http_port are both 6379",
        severity="warning",
    ),
    Fails(check="EXE-18", changes={_HTTP_PORT: 8000, _PORT: 8000}, says="are both 8000", severity="warning"),
    Fails(
        check="EXE-19",
        changes={_TIMEOUT: 43201},
        planned=_placed,
        says="the job's timeout of 43201 s exceeds the 12 h of the coordinator (43200 s)",
    ),
    Fails(
        check="EXE-20",
        changes=_to("cw-us-west-04a"),
        says=f"cw-us-west-04a is not a peer of '{_MARIN}'. Peers: cw-rno2a, cw-us-east-02a, cw-us-east-08a",
    ),
    Fails(
        check="EXE-20",
        changes={"iris.parent_cluster_config": "lib/iris/config/cw-us-east-02a.yaml"},
        says="is the configuration of cw-us-east-02a itself, which is no hub",
    ),
    # The name decides where it is known, whatever card is given.
    Fails(
        check="EXE-20",
        changes=_to("cw-us-west-04a"),
        facts={"cluster": cluster_card(hub=_MARIN)},
        says="is not a peer of",
    ),
    Fails(
        check="EXE-20",
        changes=_to("lab"),
        facts={"cluster": cluster_card(hub="hubs/lab.yaml", parents=("hubs/lab.yaml",))},
        says=f"lab is not a peer of '{_MARIN}'",
    ),
    Fails(
        check="EXE-20",
        changes=_to("lab"),
        facts={"cluster": cluster_card(hub=None, parents=())},
        says="lab is not a peer of",
    ),
    Fails(
        check="EXE-21",
        changes={_PRIORITY: "interactive", _NODES: 5},
        facts={"cluster": _BUDGET},
        says="5 nodes at 10688 each cost 53440, more than the budget of 42752",
        severity="warning",
    ),
    Fails(
        check="EXE-22",
        changes={_MEMORY: "700 gazillion"},
        says="memory '700 gazillion': the unit 'gazillion' is read as GiB, so 700 GiB",
        severity="warning",
    ),
    Fails(
        check="EXE-22",
        changes={_DISK: "2T"},
        says="the unit 'T' is read as TiB, so 2048 GiB",
        severity="warning",
    ),
    Fails(
        check="EXE-22",
        changes={_MEMORY: "751619276800"},
        says="without a unit it is read as bytes, so 700 GiB",
        severity="warning",
    ),
    Fails(
        check="EXE-22",
        changes={_MEMORY: "751619276800 bytes"},
        says="the unit 'bytes' is read as bytes, so 700 GiB",
        severity="warning",
    ),
    Fails(
        check="EXE-24",
        base="moe",
        changes={_TASKS: {}, _ENV: {_IFNAME: "eth0"}},
        facts={"cluster": cluster_card(nccl_socket_ifname=_EXCLUSION)},
        says=f"{_IFNAME}='eth0' replaces the '{_EXCLUSION}' that lab-cluster sets for its tasks; 8 nodes",
        severity="warning",
    ),
    Fails(
        check="EXE-24",
        base="moe",
        changes={_ENV: {_IFNAME: "^lo"}, _TASKS: {_IFNAME: "^lo"}},
        facts={"cluster": cluster_card(nccl_socket_ifname=_EXCLUSION)},
        says="8 nodes must find one network",
        severity="warning",
    ),
    Fails(check="EXE-28", changes={_RETRIES: -1}, says="max_retries=-1 is negative"),
    Fails(check="EXE-29", changes={_HTTP_PORT: 0}, says="ingress.vllm_http_port=0 is no port"),
    Fails(check="EXE-29", changes={_HTTP_PORT: 65536}, says="ingress.vllm_http_port=65536 is no port"),
    Fails(
        check="EXE-30",
        changes={_MEMORY: 700},
        says="memory '700' is 700 bytes: a number without unit counts bytes",
    ),
    Fails(check="EXE-30", changes={_DISK: "2KB"}, says="disk '2KB' is 2048 bytes"),
    Fails(
        check="EXE-30",
        changes={_MEMORY: "700MB"},
        says="memory '700MB' is 700 MiB: no training task fits into less than 1 GiB",
        severity="warning",
    ),
    Fails(
        check="EXE-33",
        changes={_ATTEMPT: "first"},
        says="attempt_id 'first' is not 12 hex digits",
        severity="warning",
    ),
    Fails(
        check="EXE-33",
        changes={_JOB: "other-run-8fee9962b7b5"},
        says="job_name 'other-run-8fee9962b7b5' is not that of run.id and attempt_id",
        severity="warning",
    ),
    Fails(
        check="EXE-39",
        changes={_CONFIG: "lib/iris/config/cw-rno2a.yaml"},
        says="'lib/iris/config/cw-rno2a.yaml' is not the configuration of cw-us-east-02a",
        severity="warning",
    ),
    Fails(
        check="EXE-39",
        changes={_CLUSTER: "lab-cluster"},
        facts={"cluster": cluster_card(config="hubs/lab.yaml")},
        says="is not the configuration of lab-cluster",
        severity="warning",
    ),
    Fails(
        check="EXE-40",
        planned=lambda: _evaluated("evaluate"),
        facts={"cluster": cluster_card(scheduler="iris")},
        says="stage 'evaluate' on cw-us-east-02a: MarinSkyRL, which works there, evaluates nothing",
        at="lab/score@2026.09.21",
    ),
)

PASSING = (
    Passes(check="EXE-01"),
    Passes(check="EXE-01", changes=_DIRECT),
    Passes(check="EXE-01", changes={_TARGET: "", _PARENT: DELETED}),
    Passes(check="EXE-01", changes={_TIMEOUT: 0}, planned=_placed),
    Passes(check="EXE-02", planned=_placed),
    Passes(check="EXE-02", planned=_two),
    *(Passes(check="EXE-03", changes={_PRIORITY: word}) for word in ("interactive", "batch", DELETED)),
    *(
        Passes(check="EXE-04", changes={_MEMORY: text, _DISK: text})
        for text in ("auto", "700GB", "700 GB", "700gb", "1.5TB", "700Gi", "700", 700, "2T")
    ),
    Passes(check="EXE-05", changes={_CPU: 128, _MEMORY: "2014GB", _DISK: "27.9TB"}, facts={"cluster": _H100}),
    Passes(check="EXE-05", changes={_CPU: "48.5", _MEMORY: "auto", _DISK: "auto"}, facts={"cluster": _H100}),
    Passes(check="EXE-06", changes={_VARIANT: "H100"}, facts={"cluster": _H100}),
    Passes(check="EXE-06", changes={_WIDTH: 4, _POLICY_WIDTH: 4}, facts={"cluster": _LOCAL}),
    # GEO-11 reports this one.
    Passes(check="EXE-06", changes={_WIDTH: 4}, facts={"cluster": _H100}),
    Passes(check="EXE-07"),
    Passes(check="EXE-07", changes={_JOB: "x" * 63}),
    Passes(check="EXE-07", planned=_two),
    Passes(check="EXE-08"),
    Passes(check="EXE-08", changes={"ingress": {"mode": "controller"}, "run.submission": "prepare"}),
    Passes(
        check="EXE-08",
        changes={
            "run.mode": "checkpoint_export",
            "skyrl.context_budget": DELETED,
            "runtime.entrypoint": "skyrl_train.entrypoints.checkpoint_export",
        },
    ),
    Passes(check="EXE-09"),
    Passes(check="EXE-09", changes={_BACKEND: "r2", _SPILL: "spill"}),
    Passes(check="EXE-09", changes={_PORT: "65535", "ray.driver_liveness_timeout": 0}),
    Passes(check="EXE-10"),
    Passes(check="EXE-10", changes={_MODE: "controller", _HOST: "iris.oa.dev"}),
    Passes(check="EXE-10", changes={_MODE: "controller", _HOST: ""}),
    Passes(
        check="EXE-10",
        changes=_to("lab", None) | {_MODE: "controller", _HOST: "iris.lab.org"},
        facts={"cluster": cluster_card(public_host="iris.lab.org")},
    ),
    Passes(check="EXE-18"),
    Passes(check="EXE-18", changes={_HTTP_PORT: 8000}, facts={"cluster": _LOCAL}),
    Passes(check="EXE-19", changes={_TIMEOUT: 43200}, planned=_placed),
    Passes(check="EXE-20"),
    Passes(check="EXE-20", changes=_DIRECT),
    Passes(check="EXE-20", changes=_to("cw-us-west-04a", _MARIN_DEV)),
    Passes(check="EXE-20", changes={_PARENT: "checkouts/marin/lib/iris/config/marin.yaml"}),
    Passes(check="EXE-20", changes=_to("lab"), facts={"cluster": cluster_card(hub=_MARIN)}),
    Passes(check="EXE-20", changes=_to("lab"), facts={"cluster": cluster_card(parents=(_MARIN_DEV, _MARIN))}),
    Passes(check="EXE-21"),
    Passes(check="EXE-21", changes={_PRIORITY: "interactive", _NODES: 4}, facts={"cluster": _BUDGET}),
    Passes(check="EXE-21", changes={_PRIORITY: "interactive"}, facts={"cluster": _LOCAL}),
    *(
        Passes(check="EXE-22", changes={_MEMORY: text, _DISK: text})
        for text in ("700GB", "700gb", "1.5 TB", "700Gi", "700GiB", "auto", "lots")
    ),
    Passes(check="EXE-24"),
    Passes(check="EXE-24", base="moe", facts={"cluster": cluster_card(nccl_socket_ifname=_EXCLUSION)}),
    Passes(check="EXE-24", base="moe", facts={"cluster": cluster_card(nccl_socket_ifname=None)}),
    Passes(
        check="EXE-24",
        base="moe",
        changes={_ENV: {_IFNAME: f"{_EXCLUSION}, eth9"}},
        facts={"cluster": cluster_card(nccl_socket_ifname=_EXCLUSION)},
    ),
    Passes(check="EXE-28"),
    Passes(check="EXE-28", changes={_RETRIES: 0}),
    Passes(check="EXE-29"),
    Passes(check="EXE-29", changes={_HTTP_PORT: "8080"}),
    Passes(check="EXE-30"),
    Passes(check="EXE-30", changes={_MEMORY: "1GB", _DISK: "0"}),
    Passes(check="EXE-33"),
    Passes(check="EXE-39"),
    Passes(check="EXE-39", changes={_CONFIG: "configs/production.yaml"}),
    Passes(
        check="EXE-39",
        changes={_CLUSTER: "lab-cluster", _CONFIG: "checkouts/lab.yaml"},
        facts={"cluster": cluster_card(config="hubs/lab.yaml")},
    ),
    Passes(check="EXE-40"),
    Passes(check="EXE-40", planned=lambda: _evaluated("rl")),
    Passes(check="EXE-40", planned=lambda: _evaluated("import")),
    Passes(check="EXE-40", planned=lambda: _evaluated(None)),
    Passes(check="EXE-40", planned=lambda: _evaluated("evaluate"), facts={"cluster": _LOCAL}),
    Passes(check="EXE-40", planned=lambda: _evaluated("evaluate", recorded_fingerprint="425a569b")),
)

NOT_CHECKED = (
    NotChecked(check="EXE-40", planned=lambda: _evaluated("evaluate"), needs="a cluster card with scheduler"),
    NotChecked(check="EXE-02", needs="the artifact graph"),
    NotChecked(check="EXE-03", runtime=lambda: None, needs="a runtime manifest"),
    NotChecked(
        check="EXE-03",
        runtime=lambda: pinned_runtime(priority_bands=DELETED),
        needs="priority_bands in the runtime manifest",
    ),
    NotChecked(
        check="EXE-03", changes={_PRIORITY: []}, needs=f"a usable value: {_PRIORITY} as str, it is a list"
    ),
    NotChecked(
        check="EXE-04", changes={_MEMORY: []}, needs=f"a usable value: {_MEMORY} as a size, it is a list"
    ),
    NotChecked(check="EXE-05", needs="a cluster card with cpu_per_node"),
    NotChecked(
        check="EXE-05",
        facts={"cluster": cluster_card(cpu_per_node=128)},
        needs="memory_per_node_gb in the cluster card 'lab-cluster'",
    ),
    NotChecked(
        check="EXE-05", changes={_CPU: "many"}, needs=f"a usable value: {_CPU} as a number, it is 'many'"
    ),
    NotChecked(check="EXE-05", changes={_MEMORY: "lots"}, needs=f"a usable value: {_MEMORY} as a size"),
    NotChecked(check="EXE-06", needs="a cluster card with gpus_per_node"),
    NotChecked(
        check="EXE-06",
        facts={"cluster": cluster_card(gpus_per_node=8)},
        needs="gpu_variant in the cluster card 'lab-cluster'",
    ),
    NotChecked(check="EXE-07", changes={_JOB: 7}, needs=f"a usable value: {_JOB} as str, it is 7"),
    NotChecked(
        check="EXE-08",
        runtime=lambda: pinned_runtime(document_enums=DELETED),
        needs="document_enums.run.mode in the runtime manifest",
    ),
    NotChecked(check="EXE-09", changes={_PORT: "many"}, needs=f"a usable value: {_PORT} as an integer"),
    NotChecked(
        check="EXE-10",
        changes=_to("lab", None) | {_MODE: "controller", _HOST: "x"},
        needs="a cluster card with public_host",
    ),
    NotChecked(check="EXE-19", needs="the artifact graph"),
    NotChecked(check="EXE-20", changes=_to("lab"), needs="a cluster card with hub or parents"),
    NotChecked(
        check="EXE-20",
        changes=_to("lab", _MARIN_DEV),
        facts={"cluster": cluster_card(hub=_MARIN)},
        needs=f"parents in the cluster card 'lab-cluster', which names the hub {_MARIN} only",
    ),
    NotChecked(check="EXE-21", changes={_PRIORITY: "interactive"}, needs="a cluster card with node_cost"),
    NotChecked(check="EXE-24", base="moe", needs="a cluster card with nccl_socket_ifname"),
    NotChecked(check="EXE-28", changes={_RETRIES: True}, needs=f"a usable value: {_RETRIES} as an integer"),
)

REMINDING = (
    Reminds(
        check="EXE-18",
        changes={_RETRIES: 0},
        says="max_retries is 0: a failed download of 'Qwen/Qwen3-0.6B' from the hub ends the run",
    ),
    Reminds(check="EXE-18", says="1 node of 8 H100 must be free on cw-us-east-02a"),
    Reminds(check="EXE-18", base="moe", says="8 nodes of 8 H100 must be free together on cw-us-east-02a"),
    Reminds(
        check="EXE-18",
        changes={"skyrl.entrypoint": "terminal_bench"},
        says="the sandbox service keeps 40 snapshots at a time",
    ),
    Reminds(
        check="EXE-21",
        changes={_PRIORITY: "interactive"},
        facts={"cluster": _BUDGET},
        says="1 node at 10688 each cost 10688 of your budget, 42752 by default",
    ),
)
