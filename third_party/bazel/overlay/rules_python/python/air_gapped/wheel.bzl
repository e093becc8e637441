"""The repositories of a hub: one per locked wheel, and one of aliases."""

load(":interpreter.bzl", "find_python")

_BUILD = """\
load("@rules_python//python:py_library.bzl", "py_library")
load("@{hub}//:locked.bzl", "locked")

package(default_visibility = ["//visibility:public"])

# The wheel is one source directory: an action or a runfiles tree gets one link
# for it instead of one for each of its files.
py_library(
    name = "pkg",
    data = ["site-packages"],
    imports = ["site-packages"],
    deps = [
{deps}    ],
)

filegroup(
    name = "dist_info",
    srcs = glob(["site-packages/*.dist-info/**"]),
)
"""

_DEP = """\
        locked({dep}, needed_by = {needed_by}),
"""

def _wheel_impl(rctx):
    python = find_python(rctx, rctx.attr.python_version, "SLIPWAY_PIP_PYTHON")
    rctx.file(
        "requirement.txt",
        " ".join([rctx.attr.requirement] + ["--hash=" + h for h in rctx.attr.hashes]) + "\n",
    )
    result = rctx.execute(
        [python, "-B", rctx.path(rctx.attr._fetch_wheel), "requirement.txt"] +
        rctx.attr.extra_pip_args + ["--"] + rctx.attr.extras,
        quiet = rctx.attr.quiet,
        timeout = rctx.attr.timeout,
    )
    if result.return_code:
        fail("Cannot fetch the wheel of {}:\n{}{}".format(rctx.attr.requirement, result.stdout, result.stderr))

    deps = json.decode(rctx.read("deps.json"))
    rctx.file("BUILD.bazel", _BUILD.format(
        deps = "".join([
            _DEP.format(dep = repr(dep), needed_by = repr(rctx.attr.requirement))
            for dep in deps
        ]),
        hub = rctx.attr.hub,
    ))

wheel_repository = repository_rule(
    implementation = _wheel_impl,
    attrs = {
        "extra_pip_args": attr.string_list(),
        "extras": attr.string_list(doc = "The extras that the lock names."),
        "hashes": attr.string_list(mandatory = True),
        "hub": attr.string(mandatory = True, doc = "Name of the hub repository, as the extension gives it."),
        "python_version": attr.string(mandatory = True),
        "quiet": attr.bool(default = True),
        "requirement": attr.string(mandatory = True),
        "timeout": attr.int(default = 600, doc = "Seconds."),
        "_fetch_wheel": attr.label(default = ":fetch_wheel.py"),
    },
    doc = "One wheel, downloaded by pip and unpacked.",
)

_ALIASES = """\
package(default_visibility = ["//visibility:public"])

alias(
    name = "{name}",
    actual = ":pkg",
)

alias(
    name = "pkg",
    actual = "@{wheel}//:pkg",
)

alias(
    name = "dist_info",
    actual = "@{wheel}//:dist_info",
)
"""

_REQUIREMENTS = """\
\"\"\"Labels of the packages in {lock}.\"\"\"

load(":locked.bzl", "WHEELS")

all_requirements = {labels}

def requirement(name):
    \"\"\"The label of a distribution by its name on the package index.

    Args:
        name: as the index has it, extras allowed.

    Returns:
        A label; fails where the lock has no such package.
    \"\"\"
    label = name.partition("[")[0].lower().replace("-", "_").replace(".", "_")
    if label not in WHEELS:
        fail("{lock} lacks '{{}}'. Add it to its requirements and write the lock anew.".format(name))
    return str(Label("//{{}}:pkg".format(label)))
"""

_LOCKED = """\
\"\"\"What {lock} holds.\"\"\"

WHEELS = {wheels}

def locked(name, needed_by):
    \"\"\"The label of a locked package.

    Args:
        name: its label name.
        needed_by: the requirement whose metadata asks for it.

    Returns:
        A label; fails where the lock has no such package.
    \"\"\"
    if name not in WHEELS:
        fail("{{}} needs '{{}}', which {lock} lacks. Write the lock anew.".format(needed_by, name))
    return Label("@{{}}//:pkg".format(WHEELS[name]))
"""

def _hub_impl(rctx):
    rctx.file("BUILD.bazel", "")
    for name, wheel in rctx.attr.wheels.items():
        rctx.file(name + "/BUILD.bazel", _ALIASES.format(name = name, wheel = wheel))
    rctx.file("requirements.bzl", _REQUIREMENTS.format(
        labels = json.encode_indent(["@@{}//{}:pkg".format(rctx.name, name) for name in rctx.attr.wheels]),
        lock = rctx.attr.lock,
    ))
    rctx.file("locked.bzl", _LOCKED.format(
        lock = rctx.attr.lock,
        wheels = json.encode_indent(rctx.attr.wheels),
    ))

hub_repository = repository_rule(
    implementation = _hub_impl,
    attrs = {
        "lock": attr.string(mandatory = True, doc = "The lock's label, for texts."),
        "wheels": attr.string_dict(mandatory = True, doc = "Label name to repository name."),
    },
    doc = "Aliases: @HUB//NAME, @HUB//NAME:pkg, @HUB//NAME:dist_info.",
)
