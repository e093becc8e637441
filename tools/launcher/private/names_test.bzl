"""Tests of names.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(":names.bzl", "experiment_name_problem", "line_problem", "option_problem", "option_text")

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
    asserts.equals(
        env,
        "rl_experiment //experiments/x:pin: 'pin' is the name of a verb. Choose another name.",
        experiment_name_problem("pin", "experiments/x"),
    )
    asserts.equals(
        env,
        "rl_experiment //experiments/x:a.b-c: the name has '.'. Use letters, digits and '_', such as 'a_b_c', because targets like 'a_b_c.launch' are derived from it.",
        experiment_name_problem("a.b-c", "experiments/x"),
    )
    asserts.equals(
        env,
        "rl_experiment in //experiments/x: the name is empty. Use letters, digits and '_'.",
        experiment_name_problem("", "experiments/x"),
    )
    return unittest.end(env)

names_test = unittest.make(_names_impl)

def _options_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["true", "false", "3", "smoke"], [option_text(value) for value in [True, False, 3, "smoke"]])
    for value in [True, 3, 1.5, "a=b", ""]:
        asserts.equals(env, None, option_problem("scale", value))
    asserts.equals(
        env,
        "option 'scale' is [\"a\"], of the type list. Give text, a number or a boolean.",
        option_problem("scale", ["a"]),
    )
    asserts.equals(
        env,
        "options has the name 'a=b'. Give the name of a parameter of main().",
        option_problem("a=b", "x"),
    )
    for text in ["smoke\n--version=2026.01.01", "a\rb"]:
        asserts.equals(env, "option 'scale' has a line break. Write it on one line.", option_problem("scale", text))
    asserts.equals(env, "version has a line break. Write it on one line.", line_problem("version", "2026.11.30\n"))
    asserts.equals(env, None, line_problem("version", "2026.11.30"))
    return unittest.end(env)

options_test = unittest.make(_options_impl)
