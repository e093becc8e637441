"""Tests of names.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(":names.bzl", "experiment_name_problem", "option_text")

def _names_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, experiment_name_problem("gsm8k_grpo", "experiments/gsm8k_grpo"))
    asserts.equals(
        env,
        "rl_experiment //experiments/x:a-b: the name has '-'. Use letters, digits and '_', such as 'a_b', because targets like 'a_b.launch' are derived from it.",
        experiment_name_problem("a-b", "experiments/x"),
    )
    asserts.equals(
        env,
        "rl_experiment //experiments/x:launch: 'launch' is the name of a verb. Choose another name.",
        experiment_name_problem("launch", "experiments/x"),
    )
    return unittest.end(env)

names_test = unittest.make(_names_impl)

def _options_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["true", "false", "3", "smoke"], [option_text(value) for value in [True, False, 3, "smoke"]])
    return unittest.end(env)

options_test = unittest.make(_options_impl)
