"""What the documents show is what happens."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import commands, documents, links
from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.cli.preflight_action import OUTPUTS, main

ROOT = Path()
AUTHORING = Path("docs/authoring.md")
REFUSAL = re.compile(r"<!-- refusal -->\n```text\n(.*?)```\n<!-- end of refusal -->", re.DOTALL)
LABEL = re.compile(r"//([\w/]+)?(?::([\w.]+))?")


def refusal(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What preflight says about cat_count with one engine too few."""
    source = Path("experiments/cat_count/experiment.py").read_text()
    broken = folder / "experiment.py"
    broken.write_text(source.replace("num_inference_engines=16", "num_inference_engines=15"))
    status = main(
        [
            "--label=//experiments/cat_count:cat_count",
            f"--main={broken}",
            "--version=2026.11.30",
            "--stage=rl",
            "--option=scale=smoke",
            "--runtime=third_party/marinskyrl/81ae0ef7.yaml",
            "--cluster=third_party/clusters/local.yaml",
            "--model=third_party/models/qwen3_0_6b.yaml",
            "--dataset=third_party/datasets/cat_count.yaml",
            "--ledger=experiments/cat_count/versions.lock.yaml",
            *(f"--{name}_out={folder / name}" for name in OUTPUTS),
        ]
    )
    assert status == 1
    return capsys.readouterr().err


def test_the_refusal_in_the_authoring_guide_is_the_real_one(tmp_path, capsys):
    shown = REFUSAL.search(AUTHORING.read_text(encoding="utf-8"))
    assert shown is not None
    actual = refusal(tmp_path, capsys)
    assert shown[1] == actual, f"paste this into {AUTHORING}:\n{actual}"


def test_the_recipe_keys_in_the_authoring_guide_are_the_runtimes():
    table = re.findall(
        r"^\| `([\w.]+)` \| (\w+) \| `(.*?)` \|", AUTHORING.read_text(encoding="utf-8"), re.MULTILINE
    )
    source = "third_party/marinskyrl/81ae0ef7.yaml"
    keys = load_runtime_manifest(Path(source).read_bytes(), source=source).recipe_keys
    assert len(table) == 10
    assert table == [(path, keys[path].type, json.dumps(keys[path].default).strip('"')) for path, *_ in table]
    assert {keys[path].owner for path, *_ in table} == {"recipe"}


@pytest.mark.parametrize("document", documents(ROOT), ids=str)
def test_links_lead_somewhere(document):
    assert [target for target in links(document) if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", documents(ROOT), ids=str)
def test_commands_name_packages_that_exist(document):
    for command in commands(document):
        assert command.startswith("tools/bazel "), command
        for package, _ in LABEL.findall(command):
            if package:
                assert (ROOT / package.removesuffix("/")).is_dir(), command


def test_the_readme_fits_two_screens_and_shows_the_two_commands():
    lines = Path("README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120 and max(map(len, lines)) <= 120
    shown = list(commands(Path("README.md")))
    assert shown[:2] == ["tools/bazel run //experiments/cat_count:launch", "tools/bazel test //..."]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
