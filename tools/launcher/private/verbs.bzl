"""rl_verb: what a person runs on one experiment."""

load(":start_script.bzl", "PROGRAM", "start_script")

def _rl_verb_impl(ctx):
    return start_script(ctx, ctx.files.data)

rl_verb = rule(
    implementation = _rl_verb_impl,
    doc = """A program with the files of one experiment, which `args` name.

The program is one target for all experiments; a verb is its start script and a list of runfiles.""",
    attrs = {
        "data": attr.label_list(
            doc = "Files that `args` name by $(rlocationpath).",
            allow_files = True,
        ),
        "program": PROGRAM,
    },
    executable = True,
)
