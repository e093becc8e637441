"""Analysis tests of the launcher's rules."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//tools/launcher:providers.bzl", "RlExperimentInfo")

def _outputs_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[RlExperimentInfo]
    names = {
        "digest": "sample.digest",
        "graph": "sample.graph.json",
        "launch": "sample.launch.yaml",
        "plan": "sample.plan.json",
        "report": "sample.report.html",
    }
    for field, name in names.items():
        file = getattr(info, field)
        asserts.equals(env, "File", type(file))
        asserts.equals(env, name, file.basename)
        asserts.equals(env, [file], getattr(target[OutputGroupInfo], field).to_list())
    asserts.equals(env, [info.launch], target[DefaultInfo].files.to_list())
    return analysistest.end(env)

outputs_test = analysistest.make(_outputs_impl)

def _action_impl(ctx):
    env = analysistest.begin(ctx)
    actions = [a for a in analysistest.target_actions(env) if a.mnemonic == "RlPreflight"]
    asserts.equals(env, 1, len(actions))
    asserts.equals(env, "0", actions[0].env.get("PYTHONHASHSEED"))
    inputs = [file.short_path for file in actions[0].inputs.to_list()]
    for expected in ["experiment.py", "cluster.yaml", "manifest.yaml", "versions.lock.yaml"]:
        path = "tests/starlark/" + expected
        asserts.true(env, path in inputs, "%s is no input" % path)
    for path in inputs:
        for forbidden in ["marin_iris", "google_cloud", "grpcio", "pyarrow"]:
            asserts.false(env, forbidden in path, "%s reaches the build action" % path)
    return analysistest.end(env)

action_test = analysistest.make(_action_impl)

def _failure_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.sentence)
    return analysistest.end(env)

def _no_ledger_impl(ctx):
    env = analysistest.begin(ctx)
    actions = [a for a in analysistest.target_actions(env) if a.mnemonic == "RlPreflight"]
    ledgers = [file.short_path for a in actions for file in a.inputs.to_list() if "lock" in file.basename]
    asserts.equals(env, [], ledgers)
    return analysistest.end(env)

no_ledger_test = analysistest.make(_no_ledger_impl)

failure_test = analysistest.make(
    _failure_impl,
    attrs = {"sentence": attr.string(doc = "Part of the message that the failure must have.")},
    expect_failure = True,
)

def _targets_impl(ctx):
    env = unittest.begin(ctx)
    rules = {name: ctx.attr.tags_of[name].split(",") for name in ctx.attr.tags_of}
    for verb in ["launch", "pin", "plan", "rehearse"]:
        for name in ["starlark", "sample"]:
            asserts.true(env, "manual" in rules["%s.%s" % (name, verb)], "%s.%s is built by //..." % (name, verb))
    for file in ["digest", "graph", "launch", "plan"]:
        asserts.true(env, "manual" in rules["sample.%s_file" % file])
    for verb in ["launch", "pin", "plan", "rehearse"]:
        asserts.true(env, verb in rules, "the bare verb %s is missing" % verb)
    asserts.true(env, "sample.preflight_test" in rules)
    asserts.false(env, "sample.golden_test" in rules, "there is no golden")
    return unittest.end(env)

targets_test = unittest.make(
    _targets_impl,
    attrs = {"tags_of": attr.string_dict(doc = "Target of the package -> its tags, joined by commas.")},
)

def tags_of_package():
    """Returns target -> tags, joined by commas, of the rules that the package has so far."""
    return {name: ",".join(rule["tags"]) for name, rule in native.existing_rules().items()}
