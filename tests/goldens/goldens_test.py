"""Every experiment pins its document, and one of them is the contract's own example."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.documents.strict_yaml import load_yaml_mapping

EXPERIMENTS = sorted(path.parent for path in Path("experiments").glob("*/experiment.py"))


def load(path: Path) -> dict[str, Any]:
    return load_yaml_mapping(path.read_bytes(), source=str(path))


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda path: path.name)
def test_every_experiment_has_a_golden_that_the_update_command_knows(folder):
    rendered = folder / f"{folder.name}.launch.yaml"
    assert rendered.exists(), f"add //{folder} to tests/goldens/BUILD.bazel"
    assert (folder / "golden" / "launch.yaml").exists(), "tools/bazel run //tests/goldens:update"


def test_gsm8k_grpo_is_the_smoke_example_of_the_contract():
    golden = load(Path("experiments/gsm8k_grpo/golden/launch.yaml"))
    example = load(Path("tests/contract/examples/smoke-fsdp.yaml"))
    for document in (golden, example):
        del document["run"]["attempt_id"], document["iris"]["job_name"]
    assert golden == example


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
