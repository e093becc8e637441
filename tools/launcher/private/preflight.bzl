"""rl_preflight: the rule whose action is preflight."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load(":archive.bzl", "PythonArchiveInfo", "run_archive")
load(":names.bzl", "line_problem")
load(":providers.bzl", "CardInfo", "RlExperimentInfo", "RlPreflightRequestInfo", "RuntimeManifestInfo")

# Field of RlExperimentInfo -> what follows the experiment's name in that of its file.
OUTPUTS = {
    "digest": ".digest",
    "graph": ".graph.json",
    "launch": ".launch.yaml",
    "plan": ".plan.json",
    "report": ".report.html",
}

# The attribute `_preflight` of rules that use `run_preflight`.
PREFLIGHT_PROGRAM = attr.label(
    default = "//tools/launcher/cli:preflight_program",
    cfg = "exec",
    providers = [PythonArchiveInfo],
)

def _short(label):
    return "//{}:{}".format(label.package, label.name)

def preflight_arguments(request):
    """Returns what the preflight program is told of one experiment; for `map_each` of Args.

    Args:
      request: as RlPreflightRequestInfo has it.

    Returns:
      A list of arguments, `--label` first.
    """
    arguments = [
        "--label=" + request.label,
        "--main=" + request.main.path,
    ]
    arguments += ["--src=" + file.path for file in request.srcs]
    arguments += ["--version=" + request.version, "--stage=" + request.stage]
    arguments += ["--option={}={}".format(name, request.options[name]) for name in sorted(request.options)]
    arguments += ["--runtime=" + request.runtime.path, "--cluster=" + request.cluster.path]
    arguments += ["--model=" + file.path for file in request.models]
    arguments += ["--dataset=" + file.path for file in request.datasets]
    if request.smoke:
        arguments.append("--smoke=" + request.smoke)
    if request.ledger:
        arguments.append("--ledger=" + request.ledger.path)
    return arguments

def run_preflight(ctx, arguments, **kwargs):
    """Registers an action of the preflight program, for a rule that has it as `_preflight`.

    Args:
      ctx: of the rule.
      arguments: Args of the action, in a parameter file.
      **kwargs: of ctx.actions.run.
    """
    run_archive(
        ctx,
        ctx.attr._preflight[PythonArchiveInfo],
        arguments,
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
        **kwargs
    )

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

    request = struct(
        cluster = cluster,
        datasets = datasets,
        label = _short(ctx.label),
        ledger = ctx.file.versions,
        main = ctx.file.main,
        models = models,
        options = ctx.attr.options,
        runtime = manifest,
        smoke = _short(ctx.attr.smoke.label) if ctx.attr.smoke else None,
        srcs = ctx.files.srcs,
        stage = ctx.attr.stage,
        version = ctx.attr.version,
    )
    inputs = [ctx.file.main, manifest, cluster] + ctx.files.srcs + ctx.files.versions + models + datasets

    args = ctx.actions.args()

    # Always a file, one argument a line: the same command line serves a persistent worker.
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add_all([request], map_each = preflight_arguments)
    args.add(ctx.attr._report_format[BuildSettingInfo].value, format = "--format=%s")
    planned = {name: file for name, file in outputs.items() if name != "report"}
    for name in sorted(planned):
        args.add(planned[name], format = "--{}_out=%s".format(name))

    run_preflight(
        ctx,
        args,
        inputs = inputs,
        outputs = planned.values(),
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
        RlPreflightRequestInfo(inputs = inputs, request = request),
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
        "_preflight": PREFLIGHT_PROGRAM,
        "_report": attr.label(
            default = "//tools/launcher/cli:report_writer",
            executable = True,
            cfg = "exec",
        ),
        "_report_format": attr.label(default = "//tools/launcher:report_format"),
    },
    provides = [RlExperimentInfo, RlPreflightRequestInfo],
)
