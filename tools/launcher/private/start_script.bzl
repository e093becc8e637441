"""Programs under another name: a start script of their own, and the modules of one py_binary."""

load(":bytecode.bzl", "BytecodeInfo", "python_bytecode")
load(":program_start.bzl", "ProgramStartInfo", "program_start")

PROGRAM = attr.label(
    doc = "A py_binary with `main`.",
    aspects = [python_bytecode, program_start],
    cfg = "target",
    executable = True,
    mandatory = True,
)

def start_script(ctx, files):
    """Makes the start script of `ctx.attr.program` anew, under the name of this target.

    A copy: the script finds its modules by its own name, and a link would lead to a program without
    runfiles beside it.

    Args:
      ctx: of a rule with the attribute `program`, which is PROGRAM.
      files: further files for its runfiles.

    Returns:
      DefaultInfo with the script, and with the program's modules and their bytecode as runfiles.
    """
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        output = executable,
        template = ctx.attr.program[ProgramStartInfo].script,
        substitutions = {},
        is_executable = True,
    )
    return DefaultInfo(
        executable = executable,
        files = depset([executable]),
        runfiles = ctx.runfiles([executable] + files, symlinks = ctx.attr.program[BytecodeInfo].links)
            .merge(ctx.attr.program[DefaultInfo].default_runfiles),
    )
