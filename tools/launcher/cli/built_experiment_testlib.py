"""Builds of experiments/gsm8k_grpo with small changes, for tests of the launch verbs."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.launcher.cli.preflight_action import main

SOURCE = Path("experiments/gsm8k_grpo/experiment.py")
CLUSTER = Path("third_party/clusters/cw_us_east_02a.yaml")
VERSION = "2026.09.21"
OUTPUTS = ("launch", "digest", "graph", "plan")


def source_of(nodes: int = 1, *, edits: Mapping[str, str] | None = None) -> str:
    """Return the experiment's source for another number of nodes, with all roles on all of them.

    Args:
        nodes: of the allocation.
        edits: text of the source -> what stands there instead.
    """
    changed = SOURCE.read_text(encoding="utf-8")
    for pattern, value in {
        r"num_nodes=1,": f"num_nodes={nodes},",
        r"num_inference_engines=8,": f"num_inference_engines={8 * nodes},",
        r"batch_size=16,": f"batch_size={16 * nodes},",
        r"coordinator_timeout_hours=24,": "coordinator_timeout_hours=12,",
    }.items():
        changed = re.sub(pattern, value, changed)
    for old, new in (edits or {}).items():
        assert old in changed, old
        changed = changed.replace(old, new)
    return changed


def build_arguments(
    folder: Path,
    source: str,
    *,
    label: str = "//experiments/gsm8k_grpo:gsm8k_grpo",
    version: str = VERSION,
    smoke: str | None = None,
    ledger: Path | None = None,
    runtime: Path = Path("third_party/marinskyrl/81ae0ef7.yaml"),
    cluster: Path = CLUSTER,
    model: Path = Path("third_party/models/qwen3_0_6b.yaml"),
    dataset: Path = Path("third_party/datasets/gsm8k.yaml"),
) -> list[str]:
    """Return the command line of the build action of an experiment's target.

    Args:
        folder: where source and outputs go; made if need be.
        source: text of experiment.py.
        label ... dataset: attributes of the target.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.py").write_text(source, encoding="utf-8")
    return [
        f"--label={label}",
        f"--main={folder / 'experiment.py'}",
        f"--version={version}",
        "--stage=rl",
        "--option=scale=smoke",
        f"--runtime={runtime}",
        f"--cluster={cluster}",
        f"--model={model}",
        f"--dataset={dataset}",
        *([f"--smoke={smoke}"] if smoke else []),
        *([f"--ledger={ledger}"] if ledger else []),
        *(f"--{name}_out={folder / name}" for name in OUTPUTS),
    ]


def build(folder: Path, source: str, *, cluster: Path = CLUSTER, **target: Any) -> dict[str, str]:
    """Build an experiment as its Bazel target would.

    Args:
        folder, source, cluster, target: of `build_arguments`.

    Returns:
        flag of a launch verb -> file.

    Raises:
        AssertionError: preflight refuses it.
    """
    arguments = build_arguments(folder, source, cluster=cluster, **target)
    assert main(arguments) == 0, arguments
    return {**{name: str(folder / name) for name in OUTPUTS}, "cluster": str(cluster)}
