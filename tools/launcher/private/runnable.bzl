"""A program that can also be called at its path in bazel-bin, and starts fast.

The build makes no links of runfiles (.bazelrc), so that building many tests stays fast. A program that
scripts call by its path needs them: `runnable` has them made for its one program, with its bytecode.
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
        runfiles = ctx.runfiles([executable], transitive_files = ctx.attr.program[BytecodeInfo].files).merge(program.default_runfiles),
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
