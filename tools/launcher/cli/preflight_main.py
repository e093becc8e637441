"""The preflight binary: one experiment in, its pinned outputs or every violation out.

Exit status: 0 planned, 1 refused (nothing written), 2 wrong usage.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl.flags import argparse_flags

from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.experiment_module import ExperimentError, explained, load_experiment
from tools.launcher.cli.plan_experiment import PlannedExperiment, PreflightFailed, plan_experiment
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.preflight.render_text import report_json, report_text
from tools.launcher.rl.build_options import BuildOptionError
from tools.launcher.rl.inputs import BuildInputs

OUTPUTS = ("launch", "graph", "plan", "report", "digest")


def main(arguments: Sequence[str]) -> int:
    """Run one preflight; see --help."""
    flags = _parser().parse_args(arguments)
    try:
        planned = _plan(flags)
    except PreflightFailed as failed:
        if flags.format == "json":
            text = json.dumps({"experiment": flags.label, **report_json(failed.report)}, indent=2) + "\n"
        else:
            text = report_text(failed.report, subject=flags.label)
        sys.stderr.write(text)
        return 1
    except (ExperimentError, BuildOptionError, DocumentError) as error:
        sys.stderr.write(f"error: {flags.label}: {error}\n")
        return 1
    for name in OUTPUTS:
        Path(getattr(flags, f"{name}_out")).write_bytes(getattr(planned, name))
    sys.stdout.write(planned.summary)
    return 0


def _plan(flags: argparse.Namespace) -> PlannedExperiment:
    models = [load_model_card(Path(path).read_bytes(), source=path) for path in flags.model]
    datasets = [load_dataset_card(Path(path).read_bytes(), source=path) for path in flags.dataset]
    inputs = BuildInputs(
        version=flags.version,
        runtime=load_runtime_manifest(Path(flags.runtime).read_bytes(), source=flags.runtime),
        cluster=load_cluster_card(Path(flags.cluster).read_bytes(), source=flags.cluster),
        models={card.name: card for card in models},
        datasets={card.name: card for card in datasets},
    )
    # Sources that the target lists beside main are imported by their path from the root.
    if "." not in sys.path:
        sys.path.append(".")
    main_file = Path(flags.main)
    experiment = load_experiment(main_file)
    options = dict(option.split("=", 1) for option in flags.option)
    terminals = explained(lambda: experiment.build(inputs, options), main_file)
    return plan_experiment(
        terminals, inputs, label=flags.label, options=options, stage=flags.stage, smoke=flags.smoke
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse_flags.ArgumentParser(
        prog="preflight", description=__doc__, fromfile_prefix_chars="@", inherited_absl_flags=None
    )
    parser.add_argument("--label", required=True, help="label of the rl_experiment target")
    parser.add_argument("--main", required=True, help="the experiment's Python file")
    parser.add_argument("--version", required=True, help="artifact version")
    parser.add_argument("--stage", required=True, help="default terminal stage")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=TEXT", help="option of main()")
    parser.add_argument("--smoke", help="label of the experiment whose success a large launch requires")
    parser.add_argument("--runtime", required=True, help="runtime manifest")
    parser.add_argument("--cluster", required=True, help="cluster card")
    parser.add_argument("--model", action="append", default=[], help="model card; repeatable")
    parser.add_argument("--dataset", action="append", default=[], help="dataset card; repeatable")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of a refusal")
    for name in OUTPUTS:
        parser.add_argument(f"--{name}_out", required=True, help=f"where to write the {name}")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
