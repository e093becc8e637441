import json
import sys

import pytest

from tools.launcher.catalog.load import load_parsed_runtime_manifest, load_runtime_manifest
from tools.launcher.cli import shipped_manifests
from tools.launcher.cli.shipped_manifests import load_shipped, shipped_files
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.documents.yaml_to_json import main as yaml_to_json

FILES = shipped_files()


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def parsed(request, tmp_path):
    """A shipped manifest, and what the build makes of it."""
    output = tmp_path / f"{request.param.stem}.json"
    assert yaml_to_json([str(request.param), str(output)]) == 0
    return request.param, output


def facts(manifest):
    """All that a manifest says, with the order of its mappings and what it leaves out."""
    return repr(manifest), manifest.model_dump_json(exclude_unset=True)


def test_the_parsed_manifest_says_what_the_yaml_says(parsed):
    file, output = parsed
    of_json = load_parsed_runtime_manifest(output.read_bytes(), source=file.name)
    assert facts(of_json) == facts(load_runtime_manifest(file.read_bytes(), source=file.name))


def test_a_program_reads_the_parsed_one_and_a_checkout_the_yaml(parsed, monkeypatch):
    file, output = parsed
    known = facts(load_runtime_manifest(file.read_bytes(), source=file.name))
    assert facts(load_shipped(file)) == known  # under Bazel, of what the build made
    monkeypatch.setattr(shipped_manifests, "_PARSED", output.parent / "none")
    assert facts(load_shipped(file)) == known
    content = json.loads(output.read_bytes())
    output.write_text(json.dumps(content | {"name": "of the parsed one"}))
    monkeypatch.setattr(shipped_manifests, "_PARSED", output.parent)
    assert load_shipped(file).name == "of the parsed one"


def test_a_manifest_from_elsewhere_is_never_taken_for_a_shipped_one(tmp_path):
    other = tmp_path / FILES[0].name
    other.write_bytes(FILES[0].read_bytes().replace(b"\nname: ", b"\nname: other-"))
    assert load_shipped(other).name.startswith("other-")


def test_a_parsed_manifest_is_checked_like_any_other(parsed):
    file, output = parsed
    content = json.loads(output.read_bytes()) | {"commit": 5}
    with pytest.raises(DocumentError, match=f"{file.name}: commit: Input should be a valid string, got 5"):
        load_parsed_runtime_manifest(json.dumps(content).encode(), source=file.name)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
