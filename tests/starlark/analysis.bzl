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
    asserts.equals(env, "__all__", actions[0].env.get("PYDANTIC_DISABLE_PLUGINS"))
    inputs = [file.short_path for file in actions[0].inputs.to_list()]
    for expected in ["experiment.py", "cluster.yaml", "manifest.yaml", "versions.lock.yaml"]:
        path = "tests/starlark/" + expected
        asserts.true(env, path in inputs, "%s is no input" % path)
    for path in inputs:
        for forbidden in ["marin_iris", "google_cloud", "grpcio", "pyarrow"]:
            asserts.false(env, forbidden in path, "%s reaches the build action" % path)
    return analysistest.end(env)

action_test = analysistest.make(_action_impl)

def _digests_impl(ctx):
    env = analysistest.begin(ctx)
    actions = [a for a in analysistest.target_actions(env) if a.mnemonic == "RlDigests"]

    # One for the experiments, of which there are few, and one that puts the parts together.
    asserts.equals(env, 2, len(actions))
    inputs = [file.short_path for file in actions[0].inputs.to_list()]
    for expected in ["experiment.py", "cluster.yaml", "manifest.yaml", "versions.lock.yaml"]:
        path = "tests/starlark/" + expected
        asserts.true(env, path in inputs, "%s is no input" % path)
    outputs = [path for path in inputs if path.endswith((".launch.yaml", ".plan.json", ".digest"))]
    asserts.equals(env, [], outputs)
    return analysistest.end(env)

digests_test = analysistest.make(_digests_impl)

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

def _labels_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[RlExperimentInfo]
    files = [info.digest, info.graph, info.launch, info.plan, info.report]
    asserts.equals(env, files, ctx.files.data)
    return analysistest.end(env)

labels_test = analysistest.make(
    _labels_impl,
    attrs = {"data": attr.label_list(doc = "The outputs by their labels.", allow_files = True)},
)

def _runfiles_of_package(ctx, target):
    return sorted([
        file.basename
        for file in target[DefaultInfo].default_runfiles.files.to_list()
        if file.owner.package == ctx.label.package
    ])

def _verb_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)

    # The program is made once for all experiments; a verb has a copy of its start script and no process.
    asserts.equals(env, ["TemplateExpand"], _own_mnemonics(env))
    asserts.equals(env, "sample.plan", target[DefaultInfo].files_to_run.executable.basename)
    asserts.equals(env, ["sample.plan", "sample.plan.json"], _runfiles_of_package(ctx, target))
    runfiles = [file.short_path for file in target[DefaultInfo].default_runfiles.files.to_list()]
    asserts.true(env, "tools/launcher/cli/plan_main.py" in runfiles, "the program is no runfile")
    return analysistest.end(env)

verb_test = analysistest.make(_verb_impl)

def _bytecode_impl(ctx):
    env = analysistest.begin(ctx)
    runfiles = analysistest.target_under_test(env)[DefaultInfo].default_runfiles
    links = [link.path for link in runfiles.symlinks.to_list()]
    asserts.true(env, "tools/launcher/cli/__pycache__/launch_command.cpython-312.pyc" in links, "no bytecode")

    # A module of two libraries would be compiled twice, and Bazel complain of the second file for one place.
    links = sorted(links)
    asserts.equals(env, [], [link for link, following in zip(links, links[1:]) if link == following])
    return analysistest.end(env)

bytecode_test = analysistest.make(_bytecode_impl)

def _preflight_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, ["FileWrite"], _own_mnemonics(env))
    asserts.equals(env, ["sample.launch.yaml", "sample.preflight_test"], _runfiles_of_package(ctx, target))
    return analysistest.end(env)

preflight_test = analysistest.make(_preflight_test_impl)

def _golden_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, ["FileWrite"], _own_mnemonics(env))
    asserts.equals(
        env,
        ["golden.yaml", "sample.golden_test", "sample.launch.yaml"],
        _runfiles_of_package(ctx, target),
    )
    script = [a.content for a in analysistest.target_actions(env) if a.mnemonic == "FileWrite"][0]
    asserts.true(env, "diff -u -- 'tests/starlark/golden.yaml' 'tests/starlark/sample.launch.yaml'" in script, script)
    return analysistest.end(env)

golden_test = analysistest.make(_golden_test_impl)

# Bazel makes these for every program and test.
_OF_BAZEL = ["Middleman", "RepoMappingManifest", "RunfilesTree", "SourceSymlinkManifest", "SymlinkTree", "TestRunner"]

def _own_mnemonics(env):
    return [a.mnemonic for a in analysistest.target_actions(env) if a.mnemonic not in _OF_BAZEL]

def _targets_impl(ctx):
    env = unittest.begin(ctx)
    verbs = ["launch", "pin", "plan", "rehearse", "report"]
    made = {name: ["rl_verb", "manual"] for name in ["sample." + verb for verb in verbs]}
    made["sample"] = ["rl_preflight", "manual"]
    made["sample.golden_test"] = ["rl_golden_test", "manual", "rl_check"]
    made["sample.preflight_test"] = ["rl_preflight_test", "manual", "rl_check"]

    # All of them: one more is one more for each of a thousand experiments.
    asserts.equals(env, made, {
        name: kind_and_tags
        for name, kind_and_tags in ctx.attr.rules.items()
        if name.partition(".")[0] == "sample"
    })
    for verb in verbs:
        asserts.equals(env, ["alias", "manual"], ctx.attr.rules.get(verb))
    asserts.false(env, "starlark.golden_test" in ctx.attr.rules, "there is no golden")
    return unittest.end(env)

targets_test = unittest.make(
    _targets_impl,
    attrs = {"rules": attr.string_list_dict(doc = "Target of the package -> its kind, then its tags.")},
)

_POINTS = ["grid_lr_1e_6_seed_1", "grid_lr_1e_6_seed_2", "grid_lr_2e_6_seed_1"]

def _sweep_targets_impl(ctx):
    env = unittest.begin(ctx)
    verbs = {"grid." + verb: ["rl_verb", "manual"] for verb in ["launch", "pin", "plan", "rehearse"]}
    made = {name: kind_and_tags for name, kind_and_tags in ctx.attr.rules.items() if name.startswith("grid")}
    asserts.equals(env, verbs | {"grid": ["rl_sweep_table", "manual"]}, {
        name: kind_and_tags
        for name, kind_and_tags in made.items()
        if not name.startswith("grid_")
    })
    asserts.equals(env, _POINTS, sorted([name for name in made if name.startswith("grid_") and "." not in name]))

    # Each is an experiment with all that belongs to one.
    for point in _POINTS:
        asserts.equals(env, ["rl_preflight", "manual"], made[point])
        asserts.equals(env, ["rl_preflight_test", "manual", "rl_check"], made[point + ".preflight_test"])
        for verb in ["launch", "pin", "plan", "rehearse", "report"]:
            asserts.equals(env, ["rl_verb", "manual"], made["{}.{}".format(point, verb)])
    return unittest.end(env)

sweep_targets_test = unittest.make(
    _sweep_targets_impl,
    attrs = {"rules": attr.string_list_dict(doc = "Target of the package -> its kind, then its tags.")},
)

def _sweep_table_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    launches = [point + ".launch.yaml" for point in _POINTS]
    asserts.equals(env, ["grid.sweep.json"] + launches, [file.basename for file in target[DefaultInfo].files.to_list()])
    asserts.equals(env, launches, [file.basename for file in target[OutputGroupInfo].launch.to_list()])
    actions = [action for action in analysistest.target_actions(env) if action.mnemonic == "RlSweep"]
    asserts.equals(env, 1, len(actions))

    # From plans and graphs alone.
    read = [file.basename for file in actions[0].inputs.to_list() if file.owner.package == ctx.label.package]
    asserts.equals(
        env,
        sorted([point + suffix for point in _POINTS for suffix in [".graph.json", ".plan.json"]]),
        sorted([name for name in read if name.startswith("grid_")]),
    )
    return analysistest.end(env)

sweep_table_test = analysistest.make(_sweep_table_impl)

def _sweep_verb_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, ["TemplateExpand"], _own_mnemonics(env))
    files = [point + suffix for point in _POINTS for suffix in [".digest", ".graph.json", ".launch.yaml", ".plan.json"]]
    asserts.equals(
        env,
        sorted(files + ["cluster.yaml", target.label.name, "grid.sweep.json"]),
        _runfiles_of_package(ctx, target),
    )
    return analysistest.end(env)

sweep_verb_test = analysistest.make(_sweep_verb_impl)

def rules_of_package():
    """Returns target -> kind and tags of the rules that the package has so far."""
    return {
        name: [rule["kind"]] + sorted({tag: None for tag in rule["tags"]})
        for name, rule in native.existing_rules().items()
    }
