"""The types take what they say and nothing else."""

import sys

import pytest
from pydantic import BaseModel, ValidationError

from tools.launcher import rl
from tools.launcher.catalog.cards import DatasetCard, HfExport, MissingFact, ModelCard
from tools.launcher.rl import artifacts, context_budget, execution, runtime, topology
from tools.launcher.rl.context_budget import SkyRLContextBudget, derived_lengths
from tools.launcher.rl.steps import Evaluation

ROLE_PLAN = {
    "colocate_all": True,
    "colocate_policy_ref": True,
    "policy_num_nodes": 1,
    "reference_num_nodes": 1,
    "policy_num_gpus_per_node": 8,
    "num_inference_engines": 8,
    "inference_engine_tensor_parallel_size": 1,
    "inference_engine_pipeline_parallel_size": 1,
    "inference_engine_data_parallel_size": 1,
    "inference_engine_expert_parallel_size": 1,
    "train_batch_size": 16,
    "policy_mini_batch_size": 16,
    "micro_train_batch_size_per_gpu": 1,
    "n_samples_per_prompt": 4,
}
SPEC_TYPES: list[type[BaseModel]] = sorted(
    {
        value
        for module in (artifacts, context_budget, execution, runtime, topology, rl)
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__module__.startswith("tools.launcher.rl.")
    },
    key=str,
)

# What an experiment relies on, hands over or lets in is no decision of what is learned; most need none of it.
_OPTIONAL = {"SkyRLSpec": ["required_fixes"], "IrisSkyRLExecution": ["credentials", "ingress"]}


@pytest.mark.parametrize("model", SPEC_TYPES, ids=[model.__name__ for model in SPEC_TYPES])
def test_every_type_is_frozen_strict_closed_and_without_defaults(model):
    assert (
        model.model_config["frozen"]
        and model.model_config["strict"]
        and model.model_config["extra"] == "forbid"
    )
    optional = [name for name, field in model.model_fields.items() if not field.is_required()]
    assert optional == _OPTIONAL.get(model.__name__, [])


@pytest.mark.parametrize("field", ROLE_PLAN)
def test_every_field_of_the_role_plan_is_required(field):
    with pytest.raises(ValidationError, match="Field required"):
        rl.SkyRLRolePlan(**{name: value for name, value in ROLE_PLAN.items() if name != field})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_batch_size": True}, "valid integer"),
        ({"train_batch_size": 16.0}, "valid integer"),
        ({"train_batch_size": "16"}, "valid integer"),
        ({"colocate_all": 1}, "valid boolean"),
        ({"tensor_parallel": 2}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_types_and_unknown_fields_are_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        rl.SkyRLRolePlan(**(ROLE_PLAN | change))


def test_a_frozen_plan_cannot_be_changed():
    plan = rl.SkyRLRolePlan(**ROLE_PLAN)
    with pytest.raises(ValidationError, match="frozen"):
        plan.train_batch_size = 32


def budget(window, new, turns, fraction=None, cache=None):
    return SkyRLContextBudget(
        request_window_tokens=window,
        max_new_tokens_per_turn=new,
        max_turns=turns,
        generated_budget_fraction=fraction,
        overlong_cache_fraction=cache,
    )


def test_lengths_follow_from_the_budget():
    # contract, launch-document.md §4.9 and runtime-facts.md §4
    assert derived_lengths(budget(1536, 1024, 1)) == {
        "trainer.max_prompt_length": 512,
        "generator.max_input_length": 512,
        "generator.max_turns": 1,
        "generator.sampling_params.max_generate_length": 1024,
        "generator.engine_init_kwargs.max_model_len": 1536,
        "generator.trajectory_reward_shaping.overlong.l_max": 1024,
        "generator.trajectory_reward_shaping.overlong.l_cache": 256,
    }
    several = derived_lengths(budget(9216, 1024, 8, 0.25, 0.5))
    assert several["generator.trajectory_reward_shaping.overlong.l_max"] == 2304
    assert several["generator.trajectory_reward_shaping.overlong.l_cache"] == 1152


def test_a_share_left_to_the_runtime_is_not_written():
    assert budget(1536, 1024, 1).declared() == {
        "request_window_tokens": 1536,
        "max_new_tokens_per_turn": 1024,
        "max_turns": 1,
    }
    assert budget(1536, 1024, 1, 0.25).declared()["generated_budget_fraction"] == 0.25


@pytest.mark.parametrize(
    "change", [{"episodes": 0}, {"episodes": True}, {"episodes": 1.0}, {"seed": None}, {"env_class": 5}]
)
def test_an_evaluation_is_typed(change):
    right = {"env_class": "gsm8k", "episodes": 8, "seed": 1}
    assert Evaluation(**right).model_dump() == right
    with pytest.raises(ValidationError, match="1 validation error"):
        Evaluation(**right | change)


def test_a_copy_with_a_wrong_value_is_refused_where_it_is_used():
    plan = rl.SkyRLRolePlan(**ROLE_PLAN).model_copy(update={"train_batch_size": 16.0})
    with pytest.raises(
        ValidationError, match="role_plan.train_batch_size\n  Input should be a valid integer"
    ):
        rl.SkyRLTopology(num_nodes=1, gpus_per_node=8, gpu_variant="H100", role_plan=plan)


@pytest.mark.parametrize("share", [float("nan"), float("inf")])
def test_numbers_are_finite(share):
    with pytest.raises(ValidationError, match="finite number"):
        budget(1536, 1024, 1, share)


def test_models_and_data_are_not_exchanged():
    export = HfExport(name="team/x", version="2026.01.15", fingerprint="0123abcd")
    model = rl.hf_model(ModelCard(kind="model", name="m"), export)
    data = rl.dataset(DatasetCard(kind="dataset", name="d"), export)
    with pytest.raises(ValidationError, match="team/x@2026.01.15 is of the kind hf_model, needed is dataset"):
        rl.ArtifactDataSource(step=model, relative_path="")
    with pytest.raises(ValidationError, match="is of the kind dataset, needed is hf_model or skyrl"):
        rl.ArtifactHfModel(step=data, tokenizer_uri="a/b", tokenizer_revision="c" * 40, relative_path=None)


@pytest.mark.parametrize("credentials", ["hf_value", ["hf_value"], ("hf_value", 1)])
def test_what_is_given_for_the_names_of_credentials_is_never_shown(credentials):
    with pytest.raises(ValidationError, match="credentials must be a tuple of names") as raised:
        rl.IrisSkyRLExecution.model_validate({"credentials": credentials, "cluster": "hf_value"})
    assert "hf_value" not in str(raised.value)


def test_a_step_needs_an_artifact():
    with pytest.raises(MissingFact, match="the model card 'toy' names no artifact. Add `export`"):
        rl.hf_model(ModelCard(kind="model", name="toy"), None)
    export = HfExport(name="team/data", version="2026.01.15", fingerprint="0123abcd", uri="s3://b/data")
    step = rl.dataset(DatasetCard(kind="dataset", name="d"), export)
    assert (step.address, step.override_path, step.recorded_fingerprint) == (
        "team/data@2026.01.15",
        "s3://b/data",
        "0123abcd",
    )
    with pytest.raises(TypeError, match=r"hf_model\(\): give a model card, inputs.model"):
        rl.hf_model(DatasetCard(kind="dataset", name="d"), export)
    with pytest.raises(TypeError, match=r"dataset\(\): give a dataset card.*; this is of the type str"):
        rl.dataset("team/data", export)
    with pytest.raises(TypeError, match="the export of 'd' is of the type str. Give an HfExport"):
        rl.dataset(DatasetCard(kind="dataset", name="d"), "s3://b/data")
    with pytest.raises(ValueError, match=r"evaluate\(str\): needs a skyrl_step"):
        rl.evaluate("team/run", name="team/eval", version="2026.01.15", env_class="gsm8k", episodes=8, seed=1)
    with pytest.raises(ValueError, match="needs a skyrl_step with export_hf=True"):
        rl.evaluate(step, name="team/eval", version="2026.01.15", env_class="gsm8k", episodes=8, seed=1)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
