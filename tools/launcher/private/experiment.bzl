"""rl_experiment: everything a person types about one experiment."""

load(":checks.bzl", "CHECK_TAG", "rl_golden_test", "rl_preflight_test")
load(":names.bzl", "experiment_name_problem", "option_problem", "option_text")
load(":preflight.bzl", "OUTPUTS", "rl_preflight")
load(":verbs.bzl", "named_verb")

# The ceilings of all launches of the repository that an experiment is in.
BUDGET = "//experiments:budget.yaml"

# Verb -> the program behind it, one for all experiments, and the outputs it reads. `:plan` and `:pin` need neither
# Iris nor its wheels.
_VERBS = {
    "launch": struct(
        program = "//tools/launcher:launcher_program",
        files = ["digest", "graph", "launch", "plan"],
        command = ["launch"],
        reads_cluster = True,
        reads_budget = True,
        writes_ledger = False,
    ),
    "pin": struct(
        program = "//tools/launcher/cli:pin",
        files = ["digest", "graph", "launch"],
        command = [],
        reads_cluster = False,
        reads_budget = False,
        writes_ledger = True,
    ),
    "plan": struct(
        program = "//tools/launcher/cli:plan",
        files = ["plan"],
        command = [],
        reads_cluster = False,
        reads_budget = False,
        writes_ledger = False,
    ),
    "rehearse": struct(
        program = "//tools/launcher:launcher_program",
        files = ["digest", "graph", "launch", "plan"],
        command = ["rehearse"],
        reads_cluster = True,
        reads_budget = False,
        writes_ledger = False,
    ),
    "report": struct(
        program = "//tools/launcher/cli:report",
        files = ["report"],
        command = [],
        reads_cluster = False,
        reads_budget = False,
        writes_ledger = False,
    ),
}

def rl_experiment(
        name,
        main,
        version,
        runtime,
        cluster,
        options = None,
        stage = "rl",
        models = None,
        datasets = None,
        srcs = None,
        smoke = None,
        golden = None,
        versions = "versions.lock.yaml",
        visibility = None,
        tags = None,
        testonly = None):
    """Declares an experiment: its preflight and the verbs on it.

    Makes:
      * `<name>`: preflight; building it writes the pinned launch document.
      * `<name>.launch.yaml`, `<name>.plan.json`, `<name>.graph.json`, `<name>.report.html`, `<name>.digest`: its
        files, for rules that name one of them.
      * `<name>.plan`: `bazel run` prints the plan.
      * `<name>.report`: `bazel run` shows the plan as a page, or says where that is.
      * `<name>.launch`: `bazel run` submits exactly the pinned document.
      * `<name>.rehearse`: `bazel run` runs the same document on the local Iris.
      * `<name>.pin`: `bazel run` writes the version's digests into its ledger, in the source tree.
      * `<name>.preflight_test`: `bazel test` proves that the experiment still plans.
      * `<name>.golden_test`: with `golden`, that the rendered document did not change.
      * `plan`, `report`, `launch`, `rehearse`, `pin`: the verbs once more, when `name` is the package's last component.

    Args:
      name: name of the experiment; letters, digits and `_`.
      main: Python file with main(), decorated with @rl_build_options.
      version: calendar version YYYY.MM.DD, optionally with .N; `dev` only for local work.
      runtime: runtime_manifest target.
      cluster: cluster_card target.
      options: dict of option of main() -> value; booleans and numbers may be given as such.
      stage: default terminal stage: `import`, `rl` or `evaluate` (docs/authoring.md, "Stages"). A launch takes
        `--stage` for another one.
      models: model_card targets that main() may ask for.
      datasets: dataset_card targets that main() may ask for.
      srcs: further Python files that main imports.
      smoke: the experiment whose success a large launch requires.
      golden: file which pins the rendered document under test.
      versions: the version ledger: a file of this package, which `:pin` makes if it does not exist, or a label.
        Experiments of one package share it.
      visibility: visibility of `<name>` and of its verbs.
      tags: tags of `<name>`, of its verbs and of its tests.
      testonly: as everywhere in Bazel.
    """
    problem = experiment_name_problem(name, native.package_name())
    if problem:
        fail(problem)
    for option, value in (options or {}).items():
        problem = option_problem(option, value)
        if problem:
            fail("rl_experiment //{}:{}: {}".format(native.package_name(), name, problem))
    common = {"tags": tags or [], "testonly": testonly, "visibility": visibility}

    ledger = ledger_of(name, versions)
    rl_preflight(
        name = name,
        cluster = cluster,
        datasets = datasets or [],
        main = main,
        models = models or [],
        options = {key: option_text(value) for key, value in (options or {}).items()},
        runtime = runtime,
        smoke = smoke,
        srcs = srcs or [],
        stage = stage,
        version = version,
        versions = ledger.label,
        **(common | {field: name + suffix for field, suffix in OUTPUTS.items()})
    )

    for verb in _VERBS:
        _verb(name, verb, cluster, ledger.path, tags or [], testonly, visibility)

    rl_preflight_test(
        name = name + ".preflight_test",
        size = "small",
        experiment = ":" + name,
        tags = (tags or []) + [CHECK_TAG],
    )
    if golden:
        if not native.glob([golden], allow_empty = True):
            fail("rl_experiment //{}:{}: the golden '{}' does not exist. Create it, empty, add the target to tests/goldens/BUILD.bazel, and run: tools/bazel run //tests/goldens:update".format(
                native.package_name(),
                name,
                golden,
            ))
        rl_golden_test(
            name = name + ".golden_test",
            size = "small",
            experiment = ":" + name,
            golden = golden,
            tags = (tags or []) + [CHECK_TAG],
        )

def ledger_of(name, versions):
    """Returns where a ledger is in the source tree, and its label if it is there already.

    Args:
      name: of the experiment or sweep that uses it.
      versions: as rl_experiment has it.

    Returns:
      A struct of `path`, from the root of the source tree, and `label`, None if there is no such file yet.
    """
    if ":" in versions or versions.startswith(("@", "//")):
        label = native.package_relative_label(versions)
        return struct(label = label, path = "/".join([part for part in [label.package, label.name] if part]))
    path = "/".join([part for part in [native.package_name(), versions] if part])
    exists = native.glob([versions], allow_empty = True)
    return struct(label = ":" + versions if exists else None, path = path)

def _verb(name, verb, cluster, ledger_path, tags, testonly, visibility):
    """One runnable target."""
    spec = _VERBS[verb]
    arguments = list(spec.command)
    data = []
    for file in spec.files:
        target = ":" + name + OUTPUTS[file]
        arguments.append("--{}=$(rlocationpath {})".format(file, target))
        data.append(target)
    if spec.reads_cluster:
        arguments.append("--cluster=$(rlocationpath {})".format(cluster))
        data.append(cluster)
    if spec.reads_budget:
        arguments.append("--budget=$(rlocationpath {})".format(BUDGET))
        data.append(BUDGET)
    if spec.writes_ledger:
        arguments.append("--ledger=" + ledger_path)
    named_verb(
        name = name,
        verb = verb,
        args = arguments,
        data = data,
        program = spec.program,
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
