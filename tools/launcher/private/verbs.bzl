"""rl_verb: what a person runs on one experiment, or on a sweep of them."""

load(":start_script.bzl", "PROGRAM", "start_script")

def _rl_verb_impl(ctx):
    return start_script(ctx, ctx.files.data)

rl_verb = rule(
    implementation = _rl_verb_impl,
    doc = """A program with the files of one experiment or sweep, which `args` name.

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

def named_verb(name, verb, tags, testonly, visibility, **attributes):
    """Declares `<name>.<verb>`, and `<verb>` as well where `name` is the package's last component.

    `manual`, so that a build of `//...` fetches nothing for it.

    Args:
      name: of the experiment or sweep.
      verb: one of VERBS.
      tags: further tags.
      testonly: as everywhere in Bazel.
      visibility: as everywhere in Bazel.
      **attributes: of rl_verb.
    """
    rl_verb(
        name = "{}.{}".format(name, verb),
        tags = tags + ["manual"],
        testonly = testonly,
        visibility = visibility,
        **attributes
    )
    if name == native.package_name().rpartition("/")[2]:
        native.alias(
            name = verb,
            actual = ":{}.{}".format(name, verb),
            tags = tags + ["manual"],
            testonly = testonly,
            visibility = visibility,
        )
