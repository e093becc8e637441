"""A program that can also be called by its path, and starts fast.

The build makes no links of runfiles (.bazelrc), so that building many tests stays fast. A program that
scripts call by its path needs them: `runnable` has them made for its one program, with its bytecode. The
path is what `cquery --output=files` says; bazel-bin leads there only after a build of this target alone.
"""

load(":bytecode.bzl", "BytecodeInfo", "python_bytecode")

def _with_links_impl(_settings, _attr):
    return {"//command_line_option:build_runfile_links": True}

_with_links = transition(
    implementation = _with_links_impl,
    inputs = [],
    outputs = ["//command_line_option:build_runfile_links"],
)

def _runnable_impl(ctx):
    executable = ctx.actions.declare_file(ctx.label.name)

    # A copy: a link would lead whoever follows it to a program without runfiles beside it.
    ctx.actions.expand_template(
        output = executable,
        template = ctx.executable.program,
        substitutions = {},
        is_executable = True,
    )
    program = ctx.attr.program[DefaultInfo]
    return DefaultInfo(
        executable = executable,
        files = depset([executable]),
        runfiles = ctx.runfiles([executable], symlinks = ctx.attr.program[BytecodeInfo].links)
            .merge(program.default_runfiles),
    )

runnable = rule(
    implementation = _runnable_impl,
    doc = "The start script of a py_binary, with its runfiles and their bytecode beside it.",
    attrs = {
        "program": attr.label(
            doc = "A py_binary.",
            aspects = [python_bytecode],
            cfg = "target",
            executable = True,
            mandatory = True,
        ),
    },
    cfg = _with_links,
    executable = True,
)
