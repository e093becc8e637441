"""Built sweeps for tests of their verbs, as Bazel would build them: experiments/gsm8k_grpo with another seed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.launcher.cli import sweep_writer
from tools.launcher.cli.built_experiment_testlib import CLUSTER, build, source_of

LOCAL = Path("third_party/clusters/local.yaml")
SWEEP = "//experiments/x:seeds"

_LOCAL_EDITS = {
    'cluster_config="lib/iris/config/cw-us-east-02a.yaml"': 'cluster_config="embedded"',
    "target_cluster=inputs.cluster.name": "target_cluster=None",
    'parent_cluster_config="lib/iris/config/marin.yaml"': "parent_cluster_config=None",
    'wandb_entity="marin-community"': "wandb_entity=None",
    'credentials=("WANDB_API_KEY",)': "credentials=()",
    '"logger": "wandb"': '"logger": "console"',
}


def edits_of(seed: str, *, local: bool = True) -> dict[str, str]:
    """Return what makes one point of the sources of gsm8k_grpo: its seed, in its name too."""
    edits = {"seed=17": f"seed={seed}", "tests/qwen06-gsm8k-rl": f"tests/qwen06-seed{seed}"}
    return edits | (_LOCAL_EDITS if local else {})


def write_sweep(
    folder: Path,
    seeds: Sequence[str],
    *,
    local: bool = True,
    more: Mapping[str, Mapping[str, str]] | None = None,
    ledger: Path | None = None,
) -> tuple[int, list[str]]:
    """Build the points of a sweep over `seed`, and its table.

    Args:
        folder: where everything goes.
        seeds: value of the axis for each point.
        local: whether the points are for the local Iris; else for cw-us-east-02a.
        more: seed -> further edits of that point's source.
        ledger: what is pinned.

    Returns:
        the exit status of the table's action, and the flags that the sweep's verbs get.
    """
    cluster, given = LOCAL if local else CLUSTER, []
    for seed in seeds:
        label = f"{SWEEP}_seed_{seed}"
        source = source_of(edits={**edits_of(seed, local=local), **(more or {}).get(seed, {})})
        files = build(folder / seed, source, cluster=cluster, label=label, ledger=ledger)
        case = {"point": f"seed_{seed}", "values": {"seed": seed}}
        read = {name: files[name] for name in ("digest", "graph", "launch", "plan")}
        point = {"case": case, "files": read, "graph": files["graph"], "label": label, "plan": files["plan"]}
        given.append(f"--point={json.dumps(point)}")
    table = folder / "seeds.sweep.json"
    status = sweep_writer.main([f"--sweep={SWEEP}", *given, f"--out={table}"])
    return status, [f"--sweep={table}", f"--cluster={cluster}"]
