"""Our rendering of the contract's two specs against the contract's two documents."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract import example_specs
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.render.launch_document import (
    PLACEHOLDER_ATTEMPT_ID,
    Storage,
    render_launch_document,
)
from tools.launcher.rl import SkyRLIngress, skyrl_step
from tools.launcher.rl.steps import SkyRLStepPayload

EXAMPLES = Path(__file__).parent / "examples"
SPECS = {"smoke-fsdp": example_specs.smoke_fsdp, "moe-megatron": example_specs.moe_megatron}


def example(name: str) -> dict[str, Any]:
    path = EXAMPLES / f"{name}.yaml"
    return load_yaml_mapping(path.read_bytes(), source=path.name)


def rendered(step: ArtifactStep, storage: Storage = example_specs.STORAGE) -> dict[str, Any]:
    return render_launch_document(step.payload, storage)


def without_attempt(document: dict[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(document)
    del document["run"]["attempt_id"], document["iris"]["job_name"]
    return document


def typed_leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in typed_leaves(item, f"{path}.{key}").items()}
    return {path: (type(value), value)}


@pytest.mark.parametrize("name", SPECS)
def test_the_rendered_document_equals_the_contracts(name):
    document = load_yaml_mapping(dump_yaml(rendered(SPECS[name]())), source=name)
    assert typed_leaves(without_attempt(document)) == typed_leaves(without_attempt(example(name)))
    assert document["run"]["attempt_id"] == PLACEHOLDER_ATTEMPT_ID
    assert document["iris"]["job_name"].endswith("-" + PLACEHOLDER_ATTEMPT_ID)


@pytest.mark.parametrize("name", SPECS)
def test_rendering_is_repeatable(name):
    assert dump_yaml(rendered(SPECS[name]())) == dump_yaml(rendered(SPECS[name]()))


def changed(step: ArtifactStep, **changes: Any) -> ArtifactStep:
    """The step with dotted fields of its payload replaced."""
    payload: SkyRLStepPayload = step.payload

    def replace(model: Any, path: list[str], value: Any) -> Any:
        head, *rest = path
        return model.model_copy(update={head: replace(getattr(model, head), rest, value) if rest else value})

    for path, value in changes.items():
        payload = replace(payload, path.split("__"), value)
    return skyrl_step(payload.spec, payload.execution, export_hf=payload.export_hf)


RECIPE = example_specs.smoke_fsdp().payload.spec.recipe
INGRESS = SkyRLIngress(mode="controller", host="", record_literal=False, vllm_http_port=8000)


@pytest.mark.parametrize(
    "change",
    [
        {"spec__name": "users/lab/other"},
        {"spec__version": "2026.09.22"},
        {"spec__seed": 18},
        {"export_hf": False},
        {"spec__runtime__commit": "b" * 40},
        {"spec__runtime__profile": "megatron"},
        {"spec__topology__num_nodes": 2},
        {"spec__topology__gpu_variant": "H200"},
        {"spec__topology__role_plan__train_batch_size": 32},
        {"spec__topology__role_plan__colocate_policy_ref": False},
        {"spec__retention__resume_checkpoint_count": 3},
        {"spec__context_budget__max_turns": 2},
        {"spec__recipe": RECIPE.model_copy(update={"settings": RECIPE.settings | {"extra_env": {"A": "1"}}})},
        {"spec__model__relative_path": "hf/step-33"},
        {"spec__model__tokenizer_uri": "Qwen/Qwen3-8B"},
        {"spec__model__tokenizer_revision": "c" * 40},
        {"spec__model__step": example_specs.MODEL.model_copy(update={"recorded_fingerprint": "1512cff9"})},
        {"spec__train_data": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_learned_changes_the_fingerprint(change):
    base = example_specs.smoke_fsdp()
    assert step_fingerprint(changed(base, **change)) != step_fingerprint(base)


@pytest.mark.parametrize(
    "change",
    [
        {"execution__cluster": "cw-rno2a"},
        {"execution__cluster_config": "lib/iris/config/cw-rno2a.yaml"},
        {"execution__target_cluster": None},
        {"execution__parent_cluster_config": None},
        {"execution__cpu": 96},
        {"execution__memory": "1400GB"},
        {"execution__disk": "4TB"},
        {"execution__priority": "interactive"},
        {"execution__max_retries": 3},
        {"execution__coordinator_timeout_hours": 48},
        {"execution__job_timeout_seconds": 3600},
        {"execution__wandb_entity": None},
        {"execution__ingress": INGRESS},
        {"spec__retention__temporary_storage_ttl_days": 30},
    ],
    ids=lambda change: next(iter(change)),
)
def test_where_it_runs_does_not(change):
    base = example_specs.smoke_fsdp()
    assert step_fingerprint(changed(base, **change)) == step_fingerprint(base)


def test_ingress_is_a_section_of_its_own_where_it_is_declared():
    base = example_specs.smoke_fsdp()
    document = rendered(changed(base, execution__ingress=INGRESS))
    assert document.pop("ingress") == {
        "mode": "controller",
        "host": "",
        "record_literal": False,
        "vllm_http_port": 8000,
    }
    assert document == rendered(base)


def test_storage_moves_the_document_and_not_the_fingerprint():
    step = example_specs.smoke_fsdp()
    elsewhere = Storage(prefix="s3://other/marin", temporary_bucket="s3://scratch")
    document = rendered(step, elsewhere)
    assert (
        document["artifacts"]["export_root"]
        == "s3://other/marin/users/lab/tests/qwen06-gsm8k-rl/2026.09.21/exports"
    )
    assert document["artifacts"]["checkpoint_root"].startswith(
        "s3://scratch/tmp/ttl=14d/skyrl/marin/users/lab/"
    )
    assert document != rendered(step)


def test_order_of_recipe_keys_does_not_change_the_fingerprint():
    base = example_specs.smoke_fsdp()
    turned = RECIPE.model_copy(update={"settings": dict(reversed(RECIPE.settings.items()))})
    assert step_fingerprint(changed(base, spec__recipe=turned)) == step_fingerprint(base)


def test_task_environment_is_text():
    settings = RECIPE.settings | {"extra_env": {"A": True, "B": 2, "C": None, "D": "x"}}
    document = rendered(
        changed(example_specs.smoke_fsdp(), spec__recipe=RECIPE.model_copy(update={"settings": settings}))
    )
    assert document["runtime"]["task_env"] == {"A": "1", "B": "2", "D": "x"}


@pytest.mark.parametrize("section", [3, "x", None, [1]])
def test_a_scalar_in_place_of_a_section_is_rendered_for_preflight_to_judge(section):
    settings = RECIPE.settings | {"trainer": section}
    document = rendered(
        changed(example_specs.smoke_fsdp(), spec__recipe=RECIPE.model_copy(update={"settings": settings}))
    )
    assert document["skyrl"]["trainer"] == section


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
