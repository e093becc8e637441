"""What differs between two manifests, in words, and which documents it touches."""

import sys

import pytest

from tools.launcher.catalog.runtime_manifest import RecipeKey
from tools.launcher.runtime_import.changes import compare, report, touches, without_rendered_defaults
from tools.launcher.runtime_import.checkout_for_test import pinned


def changed(keys=None, **fields):
    """The project's manifest with other keys (None removes one) and other fields."""
    old = pinned()
    recipe_keys = {path: key for path, key in {**old.recipe_keys, **(keys or {})}.items() if key is not None}
    return old.model_copy(update={"recipe_keys": recipe_keys, **fields})


_GENERATE = "skyrl_train.entrypoints.main_generate"
_BETAS = "trainer.policy.optimizer_config.adam_betas"

NEW = changed(
    {
        "trainer.log_level": None,
        "trainer.log_depth": RecipeKey(type="int", default=3),
        "trainer.bf16": RecipeKey(type="str", default="half"),
        "trainer.epochs": RecipeKey(type="int", default=2),
        "trainer.eval_interval": RecipeKey(type="float", default=5.0),
        "trainer.run_name": RecipeKey(type="str", nullable=True, default=None, owner="launcher-if-unset"),
        "trainer.train_batch_size": RecipeKey(type="int", default=512, owner="role-plan"),
        _BETAS: RecipeKey(type="list", default=(0.9, 0.95)),
        "trainer.placement.policy_num_nodes": RecipeKey(type="int", default=1, owner="role-plan"),
    },
    env_classes=("gsm8k", "maze"),
    engine_init_kwargs_forbidden=(*pinned().engine_init_kwargs_forbidden, "quantization"),
    default_strategy="megatron",
    entrypoints={
        name: entry.model_copy(update={"module": "elsewhere"}) if name == "generate" else entry
        for name, entry in pinned().entrypoints.items()
    },
    commit="f" * 40,
    sources=(),
)


def touched(**skyrl):
    changes = without_rendered_defaults(compare(pinned(), NEW), NEW)
    return touches({"runtime": {"entrypoint": ""}, "skyrl": skyrl}, changes)


def test_equal_manifests_do_not_differ():
    changes = compare(pinned(), changed())
    assert not changes.any and report(changes) == []


def test_the_report_names_every_kind_of_change():
    assert report(compare(pinned(), NEW)) == [
        "keys added: 1",
        "  trainer.log_depth: int, default 3",
        "keys removed: 1",
        "  trainer.log_level",
        "defaults moved: 7",
        "  trainer.bf16: true -> half",
        "  trainer.epochs: 1 -> 2",
        "  trainer.eval_interval: 5 -> 5.0",
        "  trainer.placement.policy_num_nodes: filled by the launcher -> 1",
        "  trainer.policy.optimizer_config.adam_betas: [0.9, 0.999] -> [0.9, 0.95]",
        "  trainer.run_name: test_run -> null",
        "  trainer.train_batch_size: 1024 -> 512",
        "types changed: 2",
        "  trainer.bf16: bool -> str",
        "  trainer.eval_interval: int -> float",
        "entries added: 2",
        "  env_classes: maze",
        "  engine_init_kwargs_forbidden: quantization",
        "entries removed: 7",
        *(f"  env_classes: {name}" for name in pinned().env_classes if name != "gsm8k"),
        "other facts changed: 2",
        f"  entrypoints.generate: module {_GENERATE}, training_type null -> module elsewhere, training_type null",
        "  default_strategy: fsdp2 -> megatron",
    ]


def test_a_document_is_touched_by_what_it_sets_and_by_what_it_relies_on():
    defaults = [
        "relies on the default of trainer.bf16, which moves from true to half",
        "relies on the default of trainer.epochs, which moves from 1 to 2",
        "relies on the default of trainer.eval_interval, which moves from 5 to 5.0",
        f"relies on the default of {_BETAS}, which moves from [0.9, 0.999] to [0.9, 0.95]",
        "relies on the default of trainer.run_name, which moves from test_run to null",
    ]
    assert list(touched()) == defaults
    # Null sets nothing, so the default still counts.
    assert list(touched(trainer={"epochs": None})) == defaults


@pytest.mark.parametrize(
    ("skyrl", "reason"),
    [
        ({"trainer": {"log_level": "INFO"}}, "sets trainer.log_level, which is gone"),
        ({"trainer": {"bf16": False}}, "sets trainer.bf16=false, which has type str now, not bool"),
        (
            {"environment": {"env_class": "aime"}},
            "uses environment.env_class=aime, which env_classes has no more",
        ),
        (
            {"generator": {"engine_init_kwargs": {"quantization": "fp8"}}},
            "sets generator.engine_init_kwargs.quantization, which is forbidden now",
        ),
    ],
)
def test_reasons(skyrl, reason):
    assert reason in touched(**skyrl)


@pytest.mark.parametrize(
    "skyrl", [{"environment": {"env_class": ["aime"]}}, {"environment": {"env_class": "gsm8k"}}]
)
def test_no_reason(skyrl):
    assert not [reason for reason in touched(**skyrl) if "env_class" in reason]


def test_a_resolved_document_relies_on_no_default():
    changes = compare(pinned(), NEW)
    resolved = {
        "runtime": {"entrypoint": "skyrl_train.entrypoints.main_base"},
        "skyrl": {"trainer": {"epochs": 1}},
    }
    assert touches(resolved, changes) == ()


@pytest.mark.parametrize("document", [{}, {"skyrl": 3, "runtime": 3}])
def test_odd_documents_are_survived(document):
    assert len(touches(document, without_rendered_defaults(compare(pinned(), NEW), NEW))) == 5


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
