"""digest_manifest: the digests of many experiments as one file."""

load(":providers.bzl", "RlExperimentInfo", "RlSweepInfo")

def _labelled(file):
    return "//{}:{}={}".format(file.owner.package, file.owner.name, file.path)

def _experiments_of(target):
    return target[RlSweepInfo].points if RlSweepInfo in target else [target[RlExperimentInfo]]

def _digest_manifest_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".json")
    experiments = [info for target in ctx.attr.experiments for info in _experiments_of(target)]
    digests = [info.digest for info in experiments]
    graphs = [info.graph for info in experiments]
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add_all(digests, map_each = _labelled, format_each = "--digest=%s")
    args.add_all(graphs, map_each = _labelled, format_each = "--graph=%s")
    args.add(output, format = "--out=%s")
    ctx.actions.run(
        executable = ctx.executable._merge,
        arguments = [args],
        inputs = digests + graphs,
        outputs = [output],
        mnemonic = "RlDigestManifest",
        progress_message = "Collecting the digests of %{label}",
    )
    return DefaultInfo(files = depset([output]))

digest_manifest = rule(
    implementation = _digest_manifest_impl,
    doc = """Writes `<name>.json`: label -> version, recipe and launch digest of each experiment.

`launcher affected --base=FILE.json` compares it with the sources as they are (docs/comparing.md).""",
    attrs = {
        "experiments": attr.label_list(
            doc = "rl_experiment and rl_sweep targets. One that is refused refuses the manifest.",
            mandatory = True,
            providers = [
                [RlExperimentInfo],
                [RlSweepInfo],
            ],
        ),
        "_merge": attr.label(
            default = "//tools/launcher/cli:affected_manifest",
            executable = True,
            cfg = "exec",
        ),
    },
)
