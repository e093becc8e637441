"""The outputs of a built experiment, as a verb reads them: digests are checked before use."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.cli.runfiles_paths import WrongFile, located
from tools.launcher.render.plan import LaunchPlan
from tools.launcher.store.bundles import BundleDigests, LaunchBundle, verify_bundle


class ExperimentFiles(BaseModel):
    """Everything a launch reads, and nothing else."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    bundle: LaunchBundle
    digests: BundleDigests
    graph: dict[str, Any]
    plan: LaunchPlan
    cluster: ClusterCard


def add_file_arguments(parser: Any) -> None:
    """Add the flags through which a verb's target names its files."""
    group = parser.add_argument_group(
        "files", "set by the experiment's target; paths, or paths in its runfiles"
    )
    for name, what in (
        ("launch", "pinned launch document"),
        ("digest", "digest file"),
        ("graph", "graph document"),
        ("plan", "plan"),
        ("cluster", "cluster card"),
    ):
        group.add_argument(f"--{name}", required=True, metavar="FILE", help=what)


def read_experiment_files(flags: Any) -> ExperimentFiles:
    """Read the files that `add_file_arguments` names.

    Raises:
        WrongFile: one is missing or not what it should be.
        BundleError: launch document and digest file do not agree.
        DocumentError: the launch document or the card cannot be read.
    """
    bundle = LaunchBundle(
        launch_yaml=_read(flags.launch),
        graph_json=_read(flags.graph),
        plan_json=_read(flags.plan),
        digest_text=_read(flags.digest).decode("utf-8", "replace"),
    )
    digests = verify_bundle(bundle)
    try:
        return ExperimentFiles(
            bundle=bundle,
            digests=digests,
            graph=json.loads(bundle.graph_json),
            plan=LaunchPlan.model_validate_json(bundle.plan_json),
            cluster=load_cluster_card(_read(flags.cluster), source=flags.cluster),
        )
    except ValueError as error:
        raise WrongFile(f"{flags.graph} or {flags.plan} is not of this launcher's making: {error}") from None


def _read(path: str) -> bytes:
    return located(path).read_bytes()
