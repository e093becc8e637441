"""The tests of an experiment. They start no Python: what they check, the build has decided."""

load("@bazel_skylib//lib:shell.bzl", "shell")
load(":providers.bzl", "RlExperimentInfo")

# .bazelrc leaves targets with this tag out of `build //...`, for which they would be half of all targets.
CHECK_TAG = "rl_check"

# Bazel would start a second process to write the XML.
_PLANS = """#!/bin/sh
# That this runs says it: the experiment's document is among its inputs, so preflight has accepted it.
[ -z "$XML_OUTPUT_FILE" ] || cat >"$XML_OUTPUT_FILE" <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="{name}" tests="1" failures="0" errors="0"><testcase name="{name}"/></testsuite></testsuites>
END
"""

_EXPERIMENT = attr.label(
    doc = "The rl_preflight target.",
    mandatory = True,
    providers = [RlExperimentInfo],
)

def _rl_preflight_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)

    # A package may be called `a&b`.
    name = "{}/{}".format(ctx.label.package, ctx.label.name).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    ctx.actions.write(script, _PLANS.format(name = name), is_executable = True)
    return DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles([ctx.attr.experiment[RlExperimentInfo].launch]),
    )

rl_preflight_test = rule(
    implementation = _rl_preflight_test_impl,
    doc = "Passes when preflight accepts the experiment; is not built, with preflight's message, when it does not.",
    attrs = {"experiment": _EXPERIMENT},
    test = True,
)

_CHANGED = (
    "The rendered document of //{}:{} is not that of the golden. " +
    "If the change is wanted: tools/bazel run //tests/goldens:update"
)

_COMPARES = """#!/bin/sh
diff -u -- {golden} {launch} && exit 0
echo >&2 {problem}
exit 1
"""

def _rl_golden_test_impl(ctx):
    experiment = ctx.attr.experiment
    launch = experiment[RlExperimentInfo].launch
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        # A test runs in its runfiles, where short paths lead to files.
        _COMPARES.format(
            golden = shell.quote(ctx.file.golden.short_path),
            launch = shell.quote(launch.short_path),
            problem = shell.quote(_CHANGED.format(experiment.label.package, experiment.label.name)),
        ),
        is_executable = True,
    )
    return DefaultInfo(executable = script, runfiles = ctx.runfiles([ctx.file.golden, launch]))

rl_golden_test = rule(
    implementation = _rl_golden_test_impl,
    doc = "Compares the rendered launch document with the committed one.",
    attrs = {
        "experiment": _EXPERIMENT,
        "golden": attr.label(
            doc = "The launch document as it was reviewed.",
            allow_single_file = True,
            mandatory = True,
        ),
    },
    test = True,
)
