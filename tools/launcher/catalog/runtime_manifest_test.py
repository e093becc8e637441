"""The manifest of the pinned runtime, and what a manifest may not hold."""

import sys
from pathlib import Path

import pytest

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.documents.strict_yaml import DocumentError

_FILE = Path(__file__).parents[3] / "third_party/marinskyrl/81ae0ef7.yaml"


@pytest.fixture(scope="module")
def pinned():
    return load_runtime_manifest(_FILE.read_bytes(), source=_FILE.name)


def test_the_file_is_called_after_its_commit(pinned):
    assert pinned.commit.startswith(_FILE.stem) and len(pinned.commit) == 40


def test_registries_agree_with_each_other(pinned):
    assert pinned.default_entrypoint in pinned.entrypoints
    assert pinned.default_strategy in pinned.strategies
    assert set(pinned.strategy_of_profile) == {"fsdp", "megatron"}
    assert set(pinned.strategy_of_profile.values()) <= set(pinned.strategies)
    assert set(pinned.group_relative_estimators) <= set(pinned.advantage_estimators)
    named = (*pinned.tis_losses, *pinned.rollout_logprob_losses)
    assert {*named, *pinned.sequence_mean_losses, *pinned.sequence_mean_preferred} <= set(
        pinned.policy_losses
    )
    assert {*pinned.inexact_entrypoints, *pinned.exact_completion_switches} <= set(pinned.entrypoints)
    modules = [entry.module for entry in pinned.entrypoints.values()]
    assert len(set(modules)) == len(modules)


def test_defaults_agree_with_the_registries(pinned):
    defaults = {
        path: key.default for path, key in pinned.recipe_keys.items() if "default" in key.model_fields_set
    }
    assert defaults["trainer.strategy"] == pinned.default_strategy
    assert defaults["trainer.algorithm.advantage_estimator"] in pinned.advantage_estimators
    assert defaults["generator.backend"] in pinned.generator_backends
    # The launcher fills these from the allocation; a default would hide that they are missing.
    roles = ("policy_num", "ref_num", "num_inference_engines")
    assert not {path for path in defaults if path.rpartition(".")[2].startswith(roles)}


def test_facts_of_the_launcher_and_of_iris(pinned):
    assert [band for band, audience in pinned.priority_bands.items() if audience == "users"] == [
        "interactive",
        "batch",
    ]
    assert {hub.rpartition("/")[2] for hub in pinned.federation} == {"marin.yaml", "marin-dev.yaml"}
    assert "ray.spill_backend" in pinned.document_enums
    assert set(pinned.document_enums) <= set(pinned.document_fields)
    reserved = pinned.reserved_variables
    assert all(
        prefix.endswith("_") for prefix in (*reserved.refused_prefixes, *reserved.pod_credential_prefixes)
    )


def test_no_name_is_listed_twice(pinned):
    for names in (
        pinned.strategies,
        pinned.generator_backends,
        pinned.env_classes,
        pinned.advantage_estimators,
        pinned.policy_losses,
        pinned.loss_reductions,
        pinned.recipe_top_level,
        pinned.engine_init_kwargs_forbidden,
    ):
        assert len(set(names)) == len(names)
    assert len(pinned.engine_init_kwargs_forbidden) == 33


def test_enumerations_are_of_keys_that_exist_and_hold_their_default(pinned):
    for path, values in pinned.recipe_enums.items():
        assert len(set(values)) == len(values)
        key = pinned.recipe_keys.get(path)
        if key is None:
            assert any(pattern in f".{path}" for pattern in pinned.open_path_patterns), path
        else:
            assert key.type == "str" and key.default in values, path


def test_the_tree_holds_every_key(pinned):
    assert pinned.recipe_tree["trainer"]["epochs"] == pinned.recipe_keys["trainer.epochs"]
    assert set(pinned.recipe_tree["trajectory_runner"]["process_pool"]) == {
        "cpus_per_coordinator", "executor_workers", "num_coordinators", "rpc_timeout_seconds"
    }  # fmt: skip


def test_what_is_not_known_stays_unknown(pinned):
    unknown = {"in_flight_weight_update", "pads_step_wise_rows"}
    assert unknown.isdisjoint(pinned.model_fields_set)
    assert "node_local_inference" in pinned.model_fields_set and pinned.node_local_inference is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((b"commit: 81ae0ef7033c", b"commit: 81ae"), "commit: String should match pattern"),
        ((b"schema_version: 1", b"schema_version: true"), "schema_version: Input should be a valid integer"),
        (
            (b"default_strategy:", b"default_stragety:"),
            "default_stragety: there is no such field (did you mean default_strategy?)",
        ),
        (
            (b"  trainer.epochs: ", b"  trainer.ref: "),
            "trainer.ref is a key, and a section because of trainer.ref.deepspeed_config",
        ),
    ],
)
def test_a_bad_manifest_has_a_clear_sentence(change, sentence):
    with pytest.raises(DocumentError) as caught:
        load_runtime_manifest(_FILE.read_bytes().replace(*change), source="m.yaml")
    assert sentence in str(caught.value) and "Correct the runtime manifest" in str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
