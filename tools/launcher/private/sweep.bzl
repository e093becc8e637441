"""rl_sweep: one experiment for each combination of some options' values."""

load(":experiment.bzl", "BUDGET", "ledger_of", "rl_experiment")
load(":preflight.bzl", "OUTPUTS")
load(":providers.bzl", "RlExperimentInfo", "RlPreflightRequestInfo", "RlSweepInfo")
load(":sweep_names.bzl", "sweep_points")
load(":verbs.bzl", "named_verb")

_TABLE = ".sweep.json"

# What the verbs read of each point.
_READ = ["digest", "graph", "launch", "plan"]

def rl_sweep(
        name,
        main,
        axes,
        version,
        runtime,
        cluster,
        exclude = None,
        options = None,
        stage = "rl",
        models = None,
        datasets = None,
        srcs = None,
        smoke = None,
        versions = "versions.lock.yaml",
        visibility = None,
        tags = None,
        testonly = None):
    """Declares an experiment for each combination of values of some options, and the verbs on all of them.

    Each point of the sweep is an rl_experiment `<name>_<point>`, with all that belongs to one but a golden. The point is
    called after its axes and values, such as `lr_1e_6_tbs_64` for learning_rate 1e-6 and train_batch_size 64. All have
    one version, so main() has to make the name of what it trains from the options that are axes (docs/sweeps.md).

    Makes besides:
      * `<name>`: building it builds every point, and refuses points that would be one run.
      * `<name>.sweep.json`: the points with their numbers, from their plans.
      * `<name>.plan`: `bazel run` prints them as one table, with what is on record of each.
      * `<name>.launch`: `bazel run` launches the points that are neither verified nor running.
      * `<name>.rehearse`: `bazel run` rehearses the points one after another on the local Iris.
      * `<name>.pin`: `bazel run` writes the digests of every point into their ledger, in the source tree.
      * `plan`, `launch`, `rehearse`, `pin`: the verbs once more, when `name` is the package's last component.

    Args:
      name: name of the sweep; letters, digits and `_`.
      main: Python file with main(), decorated with @rl_build_options.
      axes: dict of option of main() -> list of its values; at most 256 points.
      version: calendar version of every point.
      runtime: runtime_manifest target.
      cluster: cluster_card target.
      exclude: list of dicts of axis -> value; points that have all values of one are left out.
      options: dict of option of main() -> value, the same for every point.
      stage: default terminal stage: `import`, `rl` or `evaluate`.
      models: model_card targets that main() may ask for.
      datasets: dataset_card targets that main() may ask for.
      srcs: further Python files that main imports.
      smoke: the experiment whose success a large launch requires, of every point.
      versions: the version ledger, as rl_experiment has it.
      visibility: visibility of the sweep, its points and all verbs.
      tags: tags of the sweep, its points, all verbs and tests.
      testonly: as everywhere in Bazel.
    """
    swept = sweep_points(name, native.package_name(), axes, exclude or [], options or {})
    if swept.problem:
        fail(swept.problem)
    for point in swept.points:
        rl_experiment(
            name = point.name,
            cluster = cluster,
            datasets = datasets,
            main = main,
            models = models,
            options = (options or {}) | point.values,
            runtime = runtime,
            smoke = smoke,
            srcs = srcs,
            stage = stage,
            tags = tags,
            testonly = testonly,
            version = version,
            versions = versions,
            visibility = visibility,
        )

    rl_sweep_table(
        name = name,
        cases = [json.encode({"point": point.point, "values": point.values}) for point in swept.points],
        points = [":" + point.name for point in swept.points],
        table = name + _TABLE,
        tags = tags or [],
        testonly = testonly,
        visibility = visibility,
    )
    files = [":{}{}".format(point.name, OUTPUTS[file]) for point in swept.points for file in _READ]
    table = "--sweep=$(rlocationpath :{}{})".format(name, _TABLE)
    places = ["--cluster=$(rlocationpath {})".format(cluster)]
    _verb(name, "plan", [table] + places, [cluster] + files, tags, testonly, visibility)
    budget = ["--budget=$(rlocationpath {})".format(BUDGET)]
    _verb(name, "launch", [table] + places + budget, [BUDGET, cluster] + files, tags, testonly, visibility)
    _verb(name, "rehearse", [table] + places, [cluster] + files, tags, testonly, visibility)
    ledger = ["--ledger=" + ledger_of(name, versions).path]
    _verb(name, "pin", [table] + ledger, files, tags, testonly, visibility)

def _verb(name, verb, arguments, data, tags, testonly, visibility):
    named_verb(
        name = name,
        verb = verb,
        args = ["sweep-" + verb] + arguments,
        data = [":{}{}".format(name, _TABLE)] + data,
        program = "//tools/launcher:launcher_program",
        tags = tags or [],
        testonly = testonly,
        visibility = visibility,
    )

def _short(label):
    return "//{}:{}".format(label.package, label.name)

def _in_runfiles(ctx, file):
    """What $(rlocationpath) gives."""
    if file.short_path.startswith("../"):
        return file.short_path[len("../"):]
    return "{}/{}".format(ctx.workspace_name, file.short_path)

def _rl_sweep_table_impl(ctx):
    table = ctx.outputs.table
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(_short(ctx.label), format = "--sweep=%s")
    inputs = []
    for case, target in zip(ctx.attr.cases, ctx.attr.points):
        info = target[RlExperimentInfo]
        read = {field: getattr(info, field) for field in _READ}
        inputs += [info.plan, info.graph]
        args.add(json.encode({
            "case": json.decode(case),
            "files": {field: _in_runfiles(ctx, file) for field, file in read.items()},
            "graph": info.graph.path,
            "label": _short(target.label),
            "plan": info.plan.path,
        }), format = "--point=%s")
    args.add(table, format = "--out=%s")
    ctx.actions.run(
        executable = ctx.executable._write,
        arguments = [args],
        inputs = inputs,
        outputs = [table],
        mnemonic = "RlSweep",
        progress_message = "Points of %{label}",
    )
    launches = [target[RlExperimentInfo].launch for target in ctx.attr.points]
    return [
        DefaultInfo(files = depset([table] + launches)),
        OutputGroupInfo(launch = depset(launches), sweep = depset([table])),
        RlSweepInfo(
            points = [target[RlExperimentInfo] for target in ctx.attr.points],
            requests = [target[RlPreflightRequestInfo] for target in ctx.attr.points],
        ),
    ]

rl_sweep_table = rule(
    implementation = _rl_sweep_table_impl,
    doc = """Writes the points of a sweep as one file, and refuses points that would be one run.

Files: the launch document of every point, and the table. Output groups: `launch`, `sweep`.""",
    attrs = {
        "cases": attr.string_list(
            doc = "For each of `points`, as JSON: `point`, its short name, and `values`, axis -> value.",
            mandatory = True,
        ),
        "points": attr.label_list(
            doc = "The rl_experiment of each point.",
            mandatory = True,
            providers = [RlExperimentInfo, RlPreflightRequestInfo],
        ),
        "table": attr.output(
            doc = "The file, `<name>.sweep.json`.",
            mandatory = True,
        ),
        "_write": attr.label(
            default = "//tools/launcher/cli:sweep_writer",
            executable = True,
            cfg = "exec",
        ),
    },
)
