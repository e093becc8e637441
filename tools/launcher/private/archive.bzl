"""One program as a few files: its modules in one zip, and packages with native code beside it.

Bazel hashes, lists and links every file of a tool for each action that uses it. A program of this repository has
hundreds of modules; thousands of actions use it.
"""

load("@rules_python//python:defs.bzl", "PyInfo", "PyRuntimeInfo")

PythonArchiveInfo = provider(
    doc = "A Python program that an action can run.",
    fields = {
        "archive": "File: the zip to run. Before it, on the command line, go the interpreter and its options.",
        "files": "depset of File: everything that has to be there.",
        "interpreter": "File, or path on the machine that runs the action.",
    },
)

def _module(file):
    return "{}={}".format(file.path, file.short_path)

def _python_archive_impl(ctx):
    archive = ctx.actions.declare_file(ctx.label.name + ".zip")
    native = ctx.actions.declare_directory(ctx.label.name + ".native")
    runtime = ctx.attr.program[PyRuntimeInfo]
    files = ctx.attr.program[DefaultInfo].default_runfiles.files
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(archive, format = "--archive=%s")
    args.add(ctx.attr.module, format = "--module=%s")
    args.add_all([native], format_each = "--native=%s", expand_directories = False)
    args.add_all(ctx.attr.program[PyInfo].imports, format_each = "--import=%s")
    args.add_all(files, map_each = _module, format_each = "--file=%s", expand_directories = False)
    ctx.actions.run(
        executable = ctx.executable._packer,
        arguments = [args],
        inputs = files,
        outputs = [archive, native],
        mnemonic = "PythonArchive",
        progress_message = "Packing %{label}",
    )
    return [
        DefaultInfo(files = depset([archive, native])),
        PythonArchiveInfo(
            archive = archive,
            files = depset(
                [archive, native] + ([runtime.interpreter] if runtime.interpreter else []),
                transitive = [runtime.files] if runtime.files else [],
            ),
            interpreter = runtime.interpreter or runtime.interpreter_path,
        ),
    ]

python_archive = rule(
    implementation = _python_archive_impl,
    doc = "Packs a py_binary into one zip with bytecode, and one folder of the packages that have native code.",
    attrs = {
        "module": attr.string(
            doc = "The module whose main() is the program; its result is the exit status.",
            mandatory = True,
        ),
        "program": attr.label(
            doc = "The py_binary. Files that are no Python modules are left out.",
            mandatory = True,
            providers = [PyInfo, PyRuntimeInfo],
        ),
        "_packer": attr.label(
            default = "//tools/launcher/private:pack_program",
            executable = True,
            cfg = "exec",
        ),
    },
    provides = [PythonArchiveInfo],
)

def run_archive(ctx, program, arguments, **kwargs):
    """Registers an action that runs a packed program.

    Args:
      ctx: of the rule.
      program: PythonArchiveInfo, of the exec configuration.
      arguments: Args of the action.
      **kwargs: of ctx.actions.run.
    """
    start = ctx.actions.args()

    # Nothing of the machine's own: no site-packages, no user's folder, no bytecode beside sources.
    start.add_all(["-S", "-s", "-B"])
    start.add(program.archive)
    ctx.actions.run(
        executable = program.interpreter,
        arguments = [start, arguments],
        tools = program.files,
        **kwargs
    )
