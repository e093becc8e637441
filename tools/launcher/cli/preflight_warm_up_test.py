"""What a worker plans for itself, so that its children need not begin from nothing."""

from pathlib import Path

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.cli.preflight_warm_up import plan_warm_up, warm_up

MANIFEST = Path("third_party/marinskyrl/81ae0ef7.yaml")


def manifest() -> RuntimeManifest:
    return load_runtime_manifest(MANIFEST.read_bytes(), source=str(MANIFEST))


def test_the_made_up_experiment_passes_preflight_with_the_projects_manifest():
    planned = plan_warm_up(manifest())
    assert planned.launch
    assert "error" not in planned.summary


def test_what_is_computed_once_of_a_manifest_is_there_afterwards():
    runtime = manifest()
    before = set(vars(runtime))
    warm_up(runtime)
    assert {"recipe_tree", "recipe_paths_of"} <= set(vars(runtime)) - before


def test_a_manifest_which_refuses_it_is_no_error_of_the_worker():
    # No key is known: each of the recipe is refused.
    warm_up(manifest().model_copy(update={"recipe_keys": {}, "commit": "0" * 40}))
