"""Bytecode of this repository's modules, so that a program does not compile them at each start.

Python looks for it in `__pycache__` beside a module. Bytecode of another Python version than the one
that runs is not found and does no harm.
"""

# sys.implementation.cache_tag of the Python in MODULE.bazel.
_CACHE_TAG = "cpython-312"

BytecodeInfo = provider(
    doc = "Compiled modules.",
    fields = {
        "links": "depset of SymlinkEntry for ctx.runfiles(): where in the runfiles Python looks for which bytecode. " +
                 "A file that is there already has precedence, such as rules_python's own bytecode.",
    },
)

def _python_bytecode_impl(target, ctx):
    below = [
        dep[BytecodeInfo].links
        for dep in getattr(ctx.rule.attr, "deps", [])
        if BytecodeInfo in dep
    ]
    if target.label.workspace_name:
        return BytecodeInfo(links = depset())

    # The script of a program is run and not imported.
    if hasattr(ctx.rule.attr, "main"):
        return BytecodeInfo(links = depset(transitive = below))
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    sources, outputs, links = [], [], {}
    for source in getattr(ctx.rule.files, "srcs", []):
        if source.extension != "py" or source.owner.package != target.label.package:
            continue
        folder, _, module = source.owner.name.rpartition("/")
        path = "{}__pycache__/{}.{}.pyc".format(
            folder + "/" if folder else "",
            module.removesuffix(".py"),
            _CACHE_TAG,
        )

        # Not beside the module: rules_python declares bytecode of its own there, even where nothing asks for it.
        output = ctx.actions.declare_file("_bytecode/{}/{}".format(target.label.name, path))
        args.add(source, format = "%s=" + output.path)
        sources.append(source)
        outputs.append(output)
        links["/".join([part for part in [target.label.package, path] if part])] = output
    if outputs:
        ctx.actions.run(
            executable = ctx.executable._compiler,
            arguments = [args],
            inputs = sources,
            outputs = outputs,
            mnemonic = "PythonBytecode",
            progress_message = "Compiling %{label}",
        )

    # The entries and not the runfiles, which would not agree to a file in the place of a link.
    return BytecodeInfo(links = depset(transitive = [ctx.runfiles(symlinks = links).symlinks] + below))

python_bytecode = aspect(
    implementation = _python_bytecode_impl,
    doc = "Compiles the modules of every library of this repository that a program depends on.",
    attr_aspects = ["deps"],
    attrs = {
        "_compiler": attr.label(
            default = "//tools/launcher/private:compile_bytecode",
            executable = True,
            cfg = "exec",
        ),
    },
)
