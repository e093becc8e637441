import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.rehearsal.document import read_document
from tools.launcher.rehearsal.document_for_test import document
from tools.launcher.rehearsal.environments import environment_for, make_rows
from tools.launcher.rehearsal.policy import AdamState, initial_weights
from tools.launcher.rehearsal.rendezvous import Gang, join_gang
from tools.launcher.rehearsal.training import evaluate, plan_of, share, train_step


def _document(**changes):
    return read_document(dump_yaml(document(**changes)), source="launch.yaml")


def _train(plan, env_class, gang, steps=None, start=None):
    environment = environment_for(env_class)
    rows = make_rows(environment, "train", 512, 1)
    weights = initial_weights(3)
    reference, optimizer, first = weights, AdamState.fresh(), 1
    if start is not None:
        first, weights, optimizer = start
    reports = []
    for step in range(first, (steps or plan.last_step) + 1):
        weights, optimizer, report = train_step(
            plan, step, weights, reference, optimizer, rows, environment, gang
        )
        reports.append(report)
    return weights, optimizer, reports


def _alone():
    return Gang(0, 1, {}, 5.0)


@pytest.mark.parametrize("seed", [1, 2, 17, 42])
@pytest.mark.parametrize(
    ("env_class", "changes", "steps"),
    [
        # The numbers of contract/examples/smoke-fsdp.yaml.
        ("gsm8k", {"skyrl__trainer__policy_mini_batch_size": 16}, 8),
        ("cat_count", {}, 20),
        ("cat_count", {"skyrl__trainer__algorithm": {"advantage_estimator": "rloo"}}, 20),
    ],
)
def test_the_reward_clearly_rises(env_class, changes, steps, seed):
    plan = plan_of(_document(run__seed=seed, skyrl__trainer__max_steps=steps, **changes), 512)
    weights, _, reports = _train(plan, env_class, _alone())
    rewards = [report.reward_mean for report in reports]
    assert rewards[0] < 0.3
    assert np.mean(rewards[-2:]) > rewards[0] + 0.4
    environment = environment_for(env_class)
    assert evaluate(weights, make_rows(environment, "validation", 64, 9), environment) > 0.8


@pytest.mark.parametrize(("name", "steps"), [("smoke-fsdp", 8), ("moe-megatron", 20)])
def test_the_reward_rises_for_the_contracts_examples(name, steps):
    path = Path("tests/contract/examples") / f"{name}.yaml"
    plan = plan_of(read_document(path.read_bytes(), source=path.name), 512)
    assert plan.last_step >= steps
    _, _, reports = _train(plan, "gsm8k", _alone(), steps=steps)
    rewards = [report.reward_mean for report in reports]
    assert rewards[0] < 0.3 < 0.7 < rewards[-1]


def test_equal_seeds_give_equal_bits_and_another_seed_does_not():
    plan = plan_of(_document(), 512)
    first, _, reports = _train(plan, "cat_count", _alone())
    second, _, again = _train(plan, "cat_count", _alone())
    assert first.tobytes() == second.tobytes()
    assert reports == again
    other, _, _ = _train(plan_of(_document(run__seed=18), 512), "cat_count", _alone())
    assert first.tobytes() != other.tobytes()


@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_share_the_work_and_agree(tmp_path, world_size):
    plan = plan_of(_document(), 512)
    results = {}

    def member(rank):
        gang = join_gang(
            tmp_path, token="t", rank=rank, world_size=world_size, join_seconds=10, step_seconds=10
        )
        results[rank] = _train(plan, "cat_count", gang)
        gang.close()

    threads = [threading.Thread(target=member, args=(rank,)) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    alone, _, reports = _train(plan, "cat_count", _alone())
    for rank in range(world_size):
        weights, _, shared = results[rank]
        assert weights.tobytes() == results[0][0].tobytes()
        # Only the order of additions differs from one rank's.
        np.testing.assert_allclose(weights, alone, atol=1e-9)
        assert [r.reward_mean for r in shared] == [r.reward_mean for r in reports]
        assert [r.tokens for r in shared] == [r.tokens for r in reports]


def test_a_run_cut_in_two_equals_an_unbroken_one():
    plan = plan_of(_document(), 512)
    unbroken, _, _ = _train(plan, "cat_count", _alone())
    weights, optimizer, _ = _train(plan, "cat_count", _alone(), steps=3)
    resumed, _, _ = _train(plan, "cat_count", _alone(), start=(4, weights, optimizer))
    assert resumed.tobytes() == unbroken.tobytes()


def test_the_batch_arithmetic_is_the_documents():
    changes = {
        "skyrl__trainer__train_batch_size": 12,
        "skyrl__trainer__policy_mini_batch_size": 4,
        "skyrl__trainer__update_epochs_per_batch": 2,
        "skyrl__generator__n_samples_per_prompt": 3,
        "skyrl__trainer__micro_train_batch_size_per_gpu": 2,
    }
    plan = plan_of(_document(**changes), 512)
    assert plan.micro_rows == 2 * 8  # rows per GPU times the node's GPUs
    _, optimizer, reports = _train(plan, "cat_count", _alone(), steps=2)
    assert optimizer.updates == 2 * (12 // 4) * 2
    assert [report.rows for report in reports] == [36, 36]


def test_micro_batches_do_not_change_the_result():
    plan = plan_of(_document(), 512)
    whole, _, _ = _train(plan, "cat_count", _alone())
    small, _, _ = _train(plan.model_copy(update={"micro_rows": 1}), "cat_count", _alone())
    np.testing.assert_allclose(small, whole, atol=1e-9)


def test_the_number_of_steps():
    assert plan_of(_document(), 512).last_step == 8
    by_epochs = {"skyrl__trainer__max_steps": None, "skyrl__trainer__epochs": 2}
    assert plan_of(_document(**by_epochs), 512).last_step == 2 * (512 // 16)
    assert plan_of(_document(skyrl__trainer__max_steps=None), 5).last_step == 1


def test_every_prompt_comes_once_in_an_epoch():
    plan = plan_of(_document(), 512)
    environment = environment_for("cat_count")
    seen = []

    def read(prompt):
        seen.append(prompt)
        return environment.read(prompt)

    watched = environment.model_copy(update={"read": read})
    rows = make_rows(environment, "train", 64, 1)
    weights, optimizer = initial_weights(3), AdamState.fresh()
    for step in range(1, 5):  # 4 steps of 16 prompts
        weights, optimizer, _ = train_step(plan, step, weights, weights, optimizer, rows, watched, _alone())
    assert sorted(seen) == sorted(row.prompt for row in rows)


@pytest.mark.parametrize(("count", "world_size"), [(16, 1), (16, 3), (2, 5), (0, 2)])
def test_shares_are_even_and_cover_everything(count, world_size):
    blocks = [list(range(count))[share(count, rank, world_size)] for rank in range(world_size)]
    assert [item for block in blocks for item in block] == list(range(count))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
