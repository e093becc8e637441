import sys

import pytest

from tools.launcher.rehearsal.environments import environment_for, make_rows


@pytest.mark.parametrize("env_class", ["cat_count", "gsm8k", "aime"])
def test_prompts_hold_their_answer_and_follow_the_seed(env_class):
    environment = environment_for(env_class)
    rows = make_rows(environment, "train", 200, 7)
    assert {row.answer for row in rows} == set(range(10))
    assert all(environment.read(row.prompt) == row.answer for row in rows)
    assert rows == make_rows(environment, "train", 200, 7)
    assert rows != make_rows(environment, "train", 200, 8)


def test_the_splits_differ():
    environment = environment_for("cat_count")
    train = {row.prompt for row in make_rows(environment, "train", 64, 7)}
    validation = {row.prompt for row in make_rows(environment, "validation", 64, 7)}
    assert len(train & validation) < 8


def test_a_cat_prompt_counts_cats():
    environment = environment_for("cat_count")
    assert environment.read("How often does the sentence say cat? dog cat sun cat") == 2
    assert "cat" in environment.stand_in


def test_a_class_without_a_toy_says_so():
    assert environment_for("gsm8k").stand_in == "additions with results 0 to 9"
    assert environment_for("lcb").stand_in == "additions with results 0 to 9 (no toy of its own for 'lcb')"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
