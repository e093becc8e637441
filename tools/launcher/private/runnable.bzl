"""A program that can also be called by its path, and starts fast.

The build makes no links of runfiles (.bazelrc), so that building many tests stays fast. A program that
scripts call by its path needs them: `runnable` has them made for its one program, with its bytecode. The
path is what `cquery --output=files` says; bazel-bin leads there only after a build of this target alone, and
then not to experiments: a program that looks for their files below bazel-bin is a `started`.
"""

load(":start_script.bzl", "PROGRAM", "start_script")

def _with_links_impl(_settings, _attr):
    return {"//command_line_option:build_runfile_links": True}

_with_links = transition(
    implementation = _with_links_impl,
    inputs = [],
    outputs = ["//command_line_option:build_runfile_links"],
)

def _runnable_impl(ctx):
    return start_script(ctx, [])

started = rule(
    implementation = _runnable_impl,
    doc = "The start script of a py_binary, which `bazel run` gives its runfiles.",
    attrs = {"program": PROGRAM},
    executable = True,
)

runnable = rule(
    implementation = _runnable_impl,
    doc = "The start script of a py_binary, with its runfiles and their bytecode beside it.",
    attrs = {"program": PROGRAM},
    cfg = _with_links,
    executable = True,
)
