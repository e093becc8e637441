"""The start script of a py_binary, once for all targets that are this program under another name."""

load("@rules_python//python:defs.bzl", "PyInfo", "PyRuntimeInfo")

ProgramStartInfo = provider(
    doc = "How a program starts.",
    fields = {"script": "File: start_program.sh for this program. It works where its runfiles are."},
)

def _path(path):
    return path

def _in_runfiles(ctx, file):
    if file.short_path.startswith("../"):
        return file.short_path.removeprefix("../")
    return "{}/{}".format(ctx.workspace_name, file.short_path)

def _program_start_impl(target, ctx):
    main = getattr(ctx.rule.file, "main", None)
    if main == None:
        fail("{}: no start script can be made for it. Name its file in `main`".format(target.label))
    runtime = target[PyRuntimeInfo]
    imports = ctx.actions.template_dict()
    imports.add_joined("%imports%", target[PyInfo].imports, join_with = ":", map_each = _path)
    script = ctx.actions.declare_file("_start/{}".format(target.label.name))
    ctx.actions.expand_template(
        output = script,
        template = ctx.file._template,
        substitutions = {
            "%main%": _in_runfiles(ctx, main),
            "%python%": runtime.interpreter_path or "$runfiles/" + _in_runfiles(ctx, runtime.interpreter),
        },
        computed_substitutions = imports,
        is_executable = True,
    )
    return ProgramStartInfo(script = script)

program_start = aspect(
    implementation = _program_start_impl,
    doc = "Makes the start script of a py_binary.",
    attrs = {
        "_template": attr.label(
            default = "//tools/launcher/private:start_program.sh",
            allow_single_file = True,
        ),
    },
)
