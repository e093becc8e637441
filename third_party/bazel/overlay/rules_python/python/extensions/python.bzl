"""The `python` extension of rules_python 2.x, on the machine's interpreters."""

load("//python/air_gapped:interpreter.bzl", "find_python")

_HEADER = """\
load("@rules_python//python:py_runtime.bzl", "py_runtime")
load("@rules_python//python:py_runtime_pair.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])
"""

# Toolchains of one pattern are registered in the order of their names, hence
# the number in front: the default version comes first.
_TOOLCHAIN = """
py_runtime(
    name = "runtime_{id}",
    interpreter_path = "{path}",
    python_version = "PY3",
    stub_shebang = "#!{path}",
)

py_runtime_pair(
    name = "pair_{id}",
    py3_runtime = ":runtime_{id}",
)

toolchain(
    name = "{order}_toolchain_{id}",
    toolchain = ":pair_{id}",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _pythons_hub_impl(rctx):
    text = _HEADER
    for order, version in enumerate(rctx.attr.versions):
        text += _TOOLCHAIN.format(
            id = version.replace(".", "_"),
            order = ("0" + str(order))[-2:],
            path = find_python(rctx, version),
        )
    rctx.file("BUILD.bazel", text)

_pythons_hub = repository_rule(
    implementation = _pythons_hub_impl,
    attrs = {"versions": attr.string_list(doc = "The default version first.", mandatory = True)},
    doc = "Toolchains of the interpreters that the modules ask for.",
)

def _python_impl(mctx):
    default = None
    versions = []
    for mod in mctx.modules:
        for tag in mod.tags.toolchain:
            if tag.python_version not in versions:
                versions.append(tag.python_version)
        if mod.is_root:
            for tag in mod.tags.toolchain:
                if tag.is_default or len(mod.tags.toolchain) == 1:
                    default = tag.python_version
            for tag in mod.tags.defaults:
                default = tag.python_version or default
    default = default or (versions[0] if versions else "3.12")
    _pythons_hub(
        name = "pythons_hub",
        versions = [default] + [version for version in versions if version != default],
    )

python = module_extension(
    implementation = _python_impl,
    tag_classes = {
        "defaults": tag_class(attrs = {
            "python_version": attr.string(),
        }),
        "toolchain": tag_class(attrs = {
            "configure_coverage_tool": attr.bool(),
            "ignore_root_user_error": attr.bool(default = True),
            "is_default": attr.bool(),
            "python_version": attr.string(mandatory = True),
        }),
    },
)
