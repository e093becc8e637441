"""Both parsers of PyYAML make the same of every YAML file of the repository."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.lint.workspace_files import workspace_paths
from tools.launcher.documents.strict_yaml import DocumentError, load_with, strict_loader

ROOT = Path(__file__).parents[2]
C, PURE = strict_loader(yaml.CSafeLoader), strict_loader(yaml.SafeLoader)
FILES = [path for path in workspace_paths(ROOT) if path.suffix in (".yaml", ".yml")]


def outcome(loader, path):
    """The value with the types and the order of everything in it, or the refusal."""
    try:
        return repr(load_with(loader, (ROOT / path).read_bytes(), source=str(path)))
    except DocumentError as error:
        return str(error)


def test_there_are_files_of_every_kind():
    names = {str(path) for path in FILES}
    assert "third_party/models/qwen3_0_6b.yaml" in names
    assert "experiments/gsm8k_grpo/versions.lock.yaml" in names
    assert "tests/contract/examples/smoke-fsdp.yaml" in names
    assert any(name.startswith("tests/catalogue/cases/") for name in names)


def test_the_c_parser_and_the_pure_one_agree():
    assert [str(path) for path in FILES if outcome(C, path) != outcome(PURE, path)] == []


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
