"""rl_verb: what a person runs on one experiment."""

load(":bytecode.bzl", "BytecodeInfo", "python_bytecode")

def _rl_verb_impl(ctx):
    executable = ctx.actions.declare_file(ctx.label.name)
    program = ctx.attr.program[DefaultInfo]

    # The start script finds its modules by its own name, so each verb has a copy beside its runfiles.
    ctx.actions.expand_template(
        output = executable,
        template = program.files_to_run.executable,
        substitutions = {},
        is_executable = True,
    )
    return DefaultInfo(
        executable = executable,
        files = depset([executable]),
        runfiles = ctx.runfiles([executable] + ctx.files.data, symlinks = ctx.attr.program[BytecodeInfo].links)
            .merge(program.default_runfiles),
    )

rl_verb = rule(
    implementation = _rl_verb_impl,
    doc = """A program with the files of one experiment, which `args` name.

The program is one target for all experiments; a verb is its start script and a list of runfiles.""",
    attrs = {
        "data": attr.label_list(
            doc = "Files that `args` name by $(rlocationpath).",
            allow_files = True,
        ),
        "program": attr.label(
            doc = "A py_binary.",
            aspects = [python_bytecode],
            cfg = "target",
            executable = True,
            mandatory = True,
        ),
    },
    executable = True,
)
