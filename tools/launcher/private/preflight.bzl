"""rl_preflight: the rule whose action is preflight."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load(":archive.bzl", "PythonArchiveInfo", "run_archive")
load(":names.bzl", "line_problem")
load(":providers.bzl", "CardInfo", "RlExperimentInfo", "RuntimeManifestInfo")

# Field of RlExperimentInfo -> what follows the experiment's name in that of its file.
OUTPUTS = {
    "digest": ".digest",
    "graph": ".graph.json",
    "launch": ".launch.yaml",
    "plan": ".plan.json",
    "report": ".report.html",
}

def _short(label):
    return "//{}:{}".format(label.package, label.name)

def _card(ctx, target, kind, attribute):
    info = target[CardInfo]
    if info.kind != kind:
        fail("{}: {} of {} is a {} card. Give a {}_card target.".format(
            _short(ctx.label),
            _short(target.label),
            attribute,
            info.kind,
            kind,
        ))
    return info.card

def _rl_preflight_impl(ctx):
    texts = {"version": ctx.attr.version, "stage": ctx.attr.stage}
    texts.update({"option '%s'" % name: value for name, value in ctx.attr.options.items()})
    for what, text in texts.items():
        problem = line_problem(what, text)
        if problem:
            fail("{}: {}".format(_short(ctx.label), problem))
    outputs = {
        field: getattr(ctx.outputs, field) or ctx.actions.declare_file(ctx.label.name + suffix)
        for field, suffix in OUTPUTS.items()
    }
    manifest = ctx.attr.runtime[RuntimeManifestInfo].manifest
    cluster = _card(ctx, ctx.attr.cluster, "cluster", "cluster")
    models = [_card(ctx, target, "model", "models") for target in ctx.attr.models]
    datasets = [_card(ctx, target, "dataset", "datasets") for target in ctx.attr.datasets]

    args = ctx.actions.args()

    # Always a file, one argument a line: the same command line serves a persistent worker.
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("//%s:%s" % (ctx.label.package, ctx.label.name), format = "--label=%s")
    args.add(ctx.file.main, format = "--main=%s")
    args.add_all(ctx.files.srcs, format_each = "--src=%s")
    args.add(ctx.attr.version, format = "--version=%s")
    args.add(ctx.attr.stage, format = "--stage=%s")
    for name in sorted(ctx.attr.options):
        args.add("{}={}".format(name, ctx.attr.options[name]), format = "--option=%s")
    args.add(manifest, format = "--runtime=%s")
    args.add(cluster, format = "--cluster=%s")
    args.add_all(models, format_each = "--model=%s")
    args.add_all(datasets, format_each = "--dataset=%s")
    if ctx.attr.smoke:
        args.add("//%s:%s" % (ctx.attr.smoke.label.package, ctx.attr.smoke.label.name), format = "--smoke=%s")
    if ctx.file.versions:
        args.add(ctx.file.versions, format = "--ledger=%s")
    args.add(ctx.attr._report_format[BuildSettingInfo].value, format = "--format=%s")
    planned = {name: file for name, file in outputs.items() if name != "report"}
    for name in sorted(planned):
        args.add(planned[name], format = "--{}_out=%s".format(name))

    run_archive(
        ctx,
        ctx.attr._preflight[PythonArchiveInfo],
        args,
        inputs = [ctx.file.main, manifest, cluster] + ctx.files.srcs + ctx.files.versions + models + datasets,
        outputs = planned.values(),
        env = {
            # Plugins of other packages may not change our models; to look for them costs 40 ms.
            "PYDANTIC_DISABLE_PLUGINS": "__all__",
            # An experiment that lists a set writes the same order every time.
            "PYTHONHASHSEED": "0",
        },
        # One process plans for many experiments; the action as a process of its own writes the same bytes.
        execution_requirements = {
            "requires-worker-protocol": "json",
            "supports-multiplex-sandboxing": "1",
            "supports-multiplex-workers": "1",
            "supports-worker-cancellation": "1",
            "supports-workers": "1",
        },
        mnemonic = "RlPreflight",
        progress_message = "Preflight of %{label}",
    )

    # An action of its own, so that only who asks for the page has it made.
    ctx.actions.run(
        executable = ctx.executable._report,
        arguments = ["--plan=" + outputs["plan"].path, "--report_out=" + outputs["report"].path],
        inputs = [outputs["plan"]],
        outputs = [outputs["report"]],
        mnemonic = "RlReport",
        progress_message = "Report of %{label}",
    )
    return [
        DefaultInfo(
            files = depset([outputs["launch"]]),
            runfiles = ctx.runfiles([outputs["launch"]]),
        ),
        OutputGroupInfo(**{name: depset([file]) for name, file in outputs.items()}),
        RlExperimentInfo(**outputs),
    ]

rl_preflight = rule(
    implementation = _rl_preflight_impl,
    doc = """Builds the artifact graph of an experiment, checks it, and writes the pinned launch document.

Files: the launch document. Output groups: `launch`, `graph`, `plan`, `report`, `digest`.
The build fails, with every violation in one message, when a check refuses the experiment.""",
    attrs = {
        "cluster": attr.label(
            doc = "The cluster_card of the target cluster.",
            mandatory = True,
            providers = [CardInfo],
        ),
        "datasets": attr.label_list(
            doc = "The dataset_cards that main() may ask for.",
            providers = [CardInfo],
        ),
        "digest": attr.output(doc = "Label for this output, `<name>.digest`; without one it has none."),
        "graph": attr.output(doc = "Label for this output, `<name>.graph.json`; without one it has none."),
        "launch": attr.output(doc = "Label for this output, `<name>.launch.yaml`; without one it has none."),
        "main": attr.label(
            doc = "The Python file with main(), decorated with @rl_build_options.",
            allow_single_file = [".py"],
            mandatory = True,
        ),
        "models": attr.label_list(
            doc = "The model_cards that main() may ask for.",
            providers = [CardInfo],
        ),
        "options": attr.string_dict(doc = "Option of main() -> its value as text; every option has one."),
        "plan": attr.output(doc = "Label for this output, `<name>.plan.json`; without one it has none."),
        "report": attr.output(doc = "Label for this output, `<name>.report.html`; without one it has none."),
        "runtime": attr.label(
            doc = "The runtime_manifest of the pinned MarinSkyRL commit.",
            mandatory = True,
            providers = [RuntimeManifestInfo],
        ),
        "smoke": attr.label(
            doc = "The experiment whose success a large launch requires.",
            providers = [RlExperimentInfo],
        ),
        "srcs": attr.label_list(
            doc = "Python files that main imports by their path from the workspace root.",
            allow_files = [".py"],
        ),
        "stage": attr.string(
            doc = "Default terminal stage: `import`, `rl` or `evaluate`. The graph must have it.",
            mandatory = True,
        ),
        "version": attr.string(
            doc = "Artifact version: a calendar date YYYY.MM.DD, optionally with .N, or `dev`.",
            mandatory = True,
        ),
        "versions": attr.label(
            doc = "The version ledger, which `:pin` writes. Without one, nothing is pinned yet.",
            allow_single_file = [".yaml"],
        ),
        "_preflight": attr.label(
            default = "//tools/launcher/cli:preflight_program",
            cfg = "exec",
            providers = [PythonArchiveInfo],
        ),
        "_report": attr.label(
            default = "//tools/launcher/cli:report_writer",
            executable = True,
            cfg = "exec",
        ),
        "_report_format": attr.label(default = "//tools/launcher:report_format"),
    },
    provides = [RlExperimentInfo],
)
