"""Plan, graph document and digest file of one small experiment."""

import re
import sys

import pytest

from tests.contract import example_specs
from tools.launcher.documents.canonical import digest_of
from tools.launcher.graph.artifact_graph import build_graph
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.render.digests import LaunchDigests, digest_file, read_digest_file
from tools.launcher.render.graph_document import render_graph_document
from tools.launcher.render.launch_document import render_launch_document
from tools.launcher.render.plan import (
    LaunchPlan,
    PlannedArtifact,
    PlannedBatches,
    PlannedRole,
    plan_summary,
    plan_text,
)
from tools.launcher.render.report_numbers import batch_flow
from tools.launcher.rl import evaluate
from tools.launcher.rl.pinning import apart_from_runtime

RUN = example_specs.smoke_fsdp()
DOCUMENT = render_launch_document(RUN.payload, example_specs.STORAGE)
DIGESTS = LaunchDigests(recipe=step_fingerprint(RUN), launch=digest_of(DOCUMENT))
PLAN = LaunchPlan(
    experiment="//experiments/x:x",
    version="2026.09.21",
    options={"scale": "smoke"},
    terminal_stage="rl",
    stages={"rl": RUN.address},
    smoke=None,
    runtime={"manifest": "m", "commit": "c" * 40, "profile": "fsdp"},
    entrypoint="standard",
    allocation={"cluster": "local", "num_nodes": 1, "gpus_per_node": 8, "gpu_variant": "H100"},
    roles=(PlannedRole(role="policy", nodes=1, gpus=8, layout="fsdp2 <b>"),),
    batches=PlannedBatches(
        prompts_per_step=16,
        samples_per_prompt=4,
        rows_per_step=64,
        prompts_per_mini_batch=16,
        optimizer_steps_per_batch=1,
        data_parallel_ranks=8,
        rows_per_rank=8,
        micro_batch=1,
        micro_steps=8,
    ),
    lengths={"generator.max_turns": 1},
    memory={"training, per GPU": "1.2 GB"},
    artifacts=(PlannedArtifact(stage="rl", kind="skyrl", identity="a@1:b", path="s3://x"),),
    outputs={"export_root": "s3://x/exports"},
    digests=DIGESTS,
    preflight={
        "checklist": [{"id": "EXE-18", "message": "1 node of 8 H100 must be free"}],
        "violations": [{"id": "BAT-17", "path": "skyrl.trainer.max_steps", "message": "too many"}],
        "not_checked": [{"id": "CTX-04", "needs": "a model card"}],
        "passed": ["GEO-01"],
    },
)


def test_the_digest_file_reads_back():
    assert read_digest_file(digest_file(DIGESTS)) == DIGESTS
    with pytest.raises(ValueError, match="not a digest file"):
        read_digest_file(b"recipe sha256:1\n")


def test_the_summary_has_two_lines():
    first, second = plan_summary(PLAN).splitlines()
    assert first == "//experiments/x:x 2026.09.21: 1 node x 8 H100 on local, stage rl"
    assert second == f"recipe sha256:{DIGESTS.recipe} launch sha256:{DIGESTS.launch}"


def test_the_plan_says_what_a_reader_needs():
    text = plan_text(PLAN)
    for part in (
        "commit      " + "c" * 40,
        "terminal stage  rl (users/lab/tests/qwen06-gsm8k-rl@2026.09.21)",
        "16 prompts x 4 samples = 64 rows",
        "16*4 // 8 ranks = 8 rows",
        "training, per GPU  1.2 GB",
        "EXE-18  1 node of 8 H100 must be free",
        "a@1:b  s3://x",
        "warning at skyrl.trainer.max_steps: too many",
        "not checked: needs a model card",
    ):
        assert part in text


def detailed(*, deadline=(86400, "coordinator_timeout_hours", 1), **settings):
    """The plan with the part of its detail that the schedule reads."""
    seconds, setting, attempts = deadline
    detail = {
        "deadline": {"seconds": seconds, "setting": setting, "attempts": attempts},
        "settings": [
            {"path": path.replace("__", "."), "value": value, "origin": "x"}
            for path, value in settings.items()
        ],
    }
    lengths = {"generator.engine_init_kwargs.max_model_len": 1536}
    return PLAN.model_copy(update={"detail": detail, "lengths": lengths})


def schedule_of(plan):
    """The lines of the section, by name."""
    _, _, after = plan_text(plan).partition("\nschedule\n")
    lines = [line.split("  ", 2)[1:] for line in after.partition("\nbatches\n")[0].splitlines()]
    return {name: value.strip() for name, value in lines}


def test_the_schedule_says_what_is_asked_first():
    plan = detailed(trainer__max_steps=8, trainer__epochs=2, trainer__policy__optimizer_config__lr=2e-6)
    assert schedule_of(plan) == {
        "steps": "at most 8 (trainer.max_steps; 2 epochs)",
        "learning rate": "2e-06",
        "tokens per step": "at most 98,304: 64 answers x a window of 1536",
        "GPU-hours": "at most 192: 8 GPUs x 24 h (coordinator_timeout_hours)",
    }


@pytest.mark.parametrize("steps", [{}, {"trainer__max_steps": 0}, {"trainer__max_steps": None}])
def test_what_the_recipe_leaves_to_others_is_said(steps):
    plan = detailed(**steps, trainer__epochs=1, deadline=(5400, "job_timeout_seconds", 3))
    shown = schedule_of(plan)
    assert shown["steps"] == "by the data: 1 epoch"
    assert shown["learning rate"] == "the runtime's default: trainer.policy.optimizer_config.lr is not set"
    assert shown["GPU-hours"] == "at most 12: 8 GPUs x 3 attempts of 0.5 h (job_timeout_seconds)"
    assert "trainer.epochs is not set" in schedule_of(detailed())["steps"]


@pytest.mark.parametrize(
    ("settings", "per"),
    [
        ({"trainer__algorithm__dynamic_sampling__type": "filter"}, " per sampled batch"),
        ({"trainer__algorithm__dynamic_sampling__type": "replace"}, " per sampled batch"),
        ({"trainer__step_wise_training": True}, " per turn"),
        (
            {"trainer__step_wise_training": True, "trainer__algorithm__dynamic_sampling__type": "filter"},
            " per turn and per sampled batch",
        ),
        ({"trainer__step_wise_training": False, "trainer__algorithm__dynamic_sampling__type": None}, ""),
    ],
)
def test_tokens_are_bounded_only_of_what_has_one_window(settings, per):
    """Further batches, and the rows of further turns, are no part of the product."""
    shown = schedule_of(detailed(**settings))["tokens per step"]
    assert shown == f"at most 98,304{per}: 64 answers x a window of 1536"


@pytest.mark.parametrize("detail", [None, {}, {"deadline": 3, "settings": "x"}])
def test_a_plan_of_another_launcher_has_no_schedule(detail):
    text = plan_text(PLAN.model_copy(update={"detail": detail}))
    assert "\nschedule\n" not in text and "\nbatches\n" in text


def test_an_authors_text_stays_on_its_line():
    allocation = PLAN.allocation | {"cluster": "a\nb\x1b[31m"}
    plan = PLAN.model_copy(update={"allocation": allocation})
    assert len(plan_summary(plan).splitlines()) == 2
    assert "on a b [31m, stage rl" in plan_summary(plan)
    assert len(plan_text(plan).splitlines()) == len(plan_text(PLAN).splitlines())
    assert "\x1b" not in plan_text(plan) + plan_summary(plan)


def test_a_batch_that_is_gone_through_often_and_of_which_the_best_is_kept():
    batches = PLAN.batches.model_copy(
        update={"update_epochs": 3, "optimizer_steps_per_batch": 3, "rows_per_step": 16, "rows_per_rank": 2}
    )
    text = plan_text(PLAN.model_copy(update={"batches": batches}))
    for part in (
        "16 prompts x 4 samples, the best 1 of them = 16 rows\n",
        "16 // 16 prompts x 3 epochs = 3 per batch\n",
        "16*1 // 8 ranks = 2 rows\n",
    ):
        assert part in text
    flow = " ".join(re.sub(r"<[^>]*>", " ", batch_flow(batches)).split())
    for part in ("64 row", "the best 1 of 4", "16 prompts per mini batch × 3 epochs", "of 16 rows each"):
        assert part in flow


def test_one_of_something_is_no_plural():
    role = PLAN.roles[0].model_copy(update={"nodes": 1, "gpus": 1})
    batches = PLAN.batches.model_copy(
        update={
            "samples_per_prompt": 1,
            "rows_per_step": 16,
            "data_parallel_ranks": 1,
            "rows_per_rank": 1,
            "micro_batch": 1,
        }
    )
    text = plan_text(PLAN.model_copy(update={"roles": (role,), "batches": batches}))
    for part in ("1 node, 1 GPU: ", "16 prompts x 1 sample = ", "16*1 // 1 rank = 1 row\n", "1 // 1 row = "):
        assert part in text
    assert "1 nodes" not in text and "1 GPUs" not in text


def test_the_smoke_of_a_large_launch_is_named():
    assert "smoke " not in plan_text(PLAN)
    planned = PLAN.model_copy(update={"smoke": "//experiments/x:x_smoke"})
    assert "smoke           //experiments/x:x_smoke" in plan_text(planned)


def test_the_graph_document_serves_the_coordinator():
    score = evaluate(RUN, name="team/score", version="2026.09.21", env_class="gsm8k", episodes=8, seed=1)
    graph = build_graph([score])
    document = render_graph_document(
        graph,
        DOCUMENT,
        example_specs.STORAGE,
        experiment="//experiments/x:x",
        default_stage="rl",
        recipe=DIGESTS.recipe,
    )
    assert document["experiment_name"] == "x"
    assert document["stages"] == {"rl": RUN.address, "evaluate": "team/score@2026.09.21"}
    model, data, run, last = document["steps"]
    assert model["config"] == {"model": "qwen3-0.6b", "relative_path": "hf/step-32"}
    assert model["output_path"] == "s3://marin-us-east-02a/tests/qwen06-sft" and model["adopted"]
    assert data["config"] == {
        "dataset": "gsm8k",
        "relative_paths": ["train.parquet", "validation.parquet"],
        "env_class": "gsm8k",
    }
    assert run["fingerprint"] == DIGESTS.recipe and not run["adopted"]
    assert [step["fingerprint"] for step in (model, data, last)] == [
        step_fingerprint(step) for step in (*RUN.deps, score)
    ]
    assert run["temporary_root"].endswith("/skyrl/marin/users/lab/tests/qwen06-gsm8k-rl/2026.09.21")
    assert document["pinned"] is False and run["compatible"] == last["compatible"] == []
    assert document["apart_from_runtime"] == apart_from_runtime(RUN)
    assert last["config"] == {"env_class": "gsm8k", "episodes": 8, "seed": 1} and last["deps"] == [
        RUN.address
    ]


def test_an_allowed_repin_moves_the_steps_behind_the_run_as_well():
    score = evaluate(RUN, name="team/score", version="2026.09.21", env_class="gsm8k", episodes=8, seed=1)
    earlier = RUN.model_copy(update={"recorded_fingerprint": "a" * 64})
    document = render_graph_document(
        build_graph([score]),
        DOCUMENT,
        example_specs.STORAGE,
        experiment="//experiments/x:x",
        default_stage="rl",
        recipe=DIGESTS.recipe,
        pinned=True,
        compatible=("a" * 64,),
    )
    before = step_fingerprint(score.model_copy(update={"deps": (earlier,)}))
    assert [step["compatible"] for step in document["steps"]] == [[], [], ["a" * 64], [before]]
    assert document["pinned"] is True


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
