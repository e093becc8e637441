"""`relaunch`: a new attempt of a recorded run, from the bundle in the store."""

import argparse
import os
import shlex
from typing import Any

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.experiment_files import ExperimentFiles, files_of_bundle
from tools.launcher.cli.launch_arguments import (
    AUTHORIZE_HELP,
    add_gate_arguments,
    add_submission_arguments,
    agreeing_arguments,
)
from tools.launcher.cli.launch_flow import Launching, check_reasons, launch
from tools.launcher.cli.launch_place import LOCAL_CLUSTER, LaunchPlace
from tools.launcher.cli.launch_stage import refuse_unmade
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.relaunch_finished import NotLookedFor, refuse_finished
from tools.launcher.cli.run_objects import objects_in_folder, objects_of
from tools.launcher.cli.run_place import add_run_arguments, credentials_of, place_of, store_of
from tools.launcher.cli.run_selection import NAMING, WHOLE, NoSuchRun, find_named_run, short_name
from tools.launcher.cli.runfiles_paths import WrongFile, read_located
from tools.launcher.cli.shipped_cards import shipped_budget, shipped_cluster
from tools.launcher.store.bundles import BUNDLE_PREFIX, BundleError, unpack, verify_bundle
from tools.launcher.store.content import get_content
from tools.launcher.store.object_store import ObjectMissing, ObjectStore
from tools.launcher.store.records import RunRecord, list_records
from tools.launcher.submit.authorization import parse_authorization
from tools.launcher.submit.relaunch import RelaunchRefused
from tools.launcher.submit.request import LaunchMismatch
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = f"""Starts a new attempt of a recorded run: the same bundle, whose digest is checked, on the same
cluster. Nothing is built anew. It is refused while an attempt lives or may live, and once the version was
launched with another runtime. What it will resume from is said first. A run that ended well is not relaunched as long as
what it made is there: a new attempt would only reuse it. To train anew, publish a new version. A dry run asks no bucket
for that: of a run that ended well on a real cluster it shows the request, and ends with exit status 4, not known.

{NAMING} {WHOLE} Of several runs that fit the newest is taken.

examples:
  tools/bazel run //tools/launcher -- relaunch cat_count --authorize="ann: node fault, agreed with ops"
  tools/bazel run //tools/launcher -- relaunch cat_count/2f1bbe6d --dry-run
  tools/bazel run //tools/launcher -- relaunch gsm8k_grpo --store=gs://lab/rl --authorize="ann: quota" --yes
"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `relaunch`."""
    add_run_arguments(parser)
    parser.add_argument("--authorize", metavar="WHO: WHY", help=AUTHORIZE_HELP)
    add_submission_arguments(parser)
    add_gate_arguments(parser)
    files = parser.add_argument_group("files", "of a repository of your own; else this one's")
    files.add_argument("--cluster", metavar="FILE", help="cluster card of the run's cluster")
    files.add_argument("--budget", metavar="FILE", help="the repository's GPU-hour ceilings")


@reporting
def run(flags: Any) -> int:
    """Relaunch one run; see DESCRIPTION."""
    if not flags.run:
        raise NoSuchRun("name the run to relaunch: experiment[/launch digest]; `launcher status` shows them")
    # A dry run asks nobody, so nobody needs to answer for it.
    authorized = None if flags.dry_run else str(parse_authorization(flags.authorize))
    source = read_source_state(os.environ)
    store = store_of(flags, os.environ)
    record = find_named_run(store, flags.run)
    where = place_of(record, store, flags, os.environ, source.who)
    if where.elsewhere:
        raise RelaunchRefused(f"{where.elsewhere}. Relaunch it there, or launch the experiment here")
    files = _files(record, store, flags)
    check_reasons(files.bundle, flags)
    stage = record.stage or files.graph["default_stage"]
    refuse_unmade(files, where.place, stage)
    newest = _newest(store, record)
    left_open = None
    # Before the plan, which is longer than a terminal. A dry run asks no bucket.
    look = objects_in_folder if flags.dry_run else objects_of
    try:
        with said_if_slow("looking whether what the run made is still there"):
            refuse_finished(newest, files, where.place, stage, look(where.place))
    except NotLookedFor as question:
        left_open = question
    launching = Launching(
        files=files,
        place=where.place,
        stage=stage,
        credentials=credentials_of(record),
        source=source,
        authorized=authorized,
        seen_ordinal=newest.key.ordinal,
    )
    launch_flags = argparse.Namespace(
        **{**vars(flags), "relaunch": True, "budget": flags.budget or shipped_budget()}
    )
    status = launch(
        launching,
        launch_flags,
        agreeing=_agreeing_command(record, flags),
        again=_again_command(record, where.place, flags),
    )
    if left_open is not None:
        raise left_open
    return status


def _files(record: RunRecord, store: ObjectStore, flags: Any) -> ExperimentFiles:
    if not record.bundle_digest:
        raise LaunchMismatch(
            f"{record.key}: its record names no bundle, so there is nothing to start again. Launch the "
            "experiment"
        )
    try:
        bundle = unpack(get_content(store, BUNDLE_PREFIX, record.bundle_digest))
    except ObjectMissing:
        raise LaunchMismatch(
            f"{record.key}: its bundle sha256:{record.bundle_digest[:8]} is no longer in {store.url}, so there is "
            "nothing to start again. Build the experiment and launch it with --relaunch, which stores it again"
        ) from None
    digests = verify_bundle(bundle)
    if digests.launch != record.key.launch_digest:
        raise BundleError(
            f"{record.key}: its bundle holds the launch document sha256:{digests.launch}. The record was "
            "tampered with: build the experiment and launch it"
        )
    return files_of_bundle(bundle, _card(record, flags), source=f"the bundle of {short_name(record)}")


def _newest(store: ObjectStore, record: RunRecord) -> RunRecord:
    """Return the newest attempt of the run's document."""
    same = list_records(store, record.key.experiment)
    return max(
        (one for one in same if one.key.launch_digest == record.key.launch_digest),
        key=lambda one: one.key.ordinal,
    )


def _card(record: RunRecord, flags: Any) -> ClusterCard:
    if flags.cluster:
        data = read_located(flags.cluster, fix="Name the card of the run's cluster")
        return load_cluster_card(data, source=flags.cluster)
    # The local Iris is the place of every rehearsal, whatever cluster its document is for.
    card = shipped_cluster(record.cluster or LOCAL_CLUSTER)
    if card is None:
        raise WrongFile(
            f"there is no card of the cluster '{record.cluster}' here, and the gates need it. Name it with "
            "--cluster=FILE"
        )
    return card


def _agreeing_command(record: RunRecord, flags: Any) -> str:
    """The command line of this relaunch, with --yes."""
    repeated = agreeing_arguments(flags, "store", "controller", "cluster", "budget", "authorize")
    return f"tools/bazel run //tools/launcher -- relaunch {shlex.join([short_name(record), *repeated])}"


def _again_command(record: RunRecord, place: LaunchPlace, flags: Any) -> str:
    """The command line that relaunches the document once more, but for who answers for it."""
    named = ("controller", "cluster", "budget")
    repeated = [f"--{name}={value}" for name in named if (value := getattr(flags, name))]
    document = f"{record.key.experiment}/{record.key.launch_digest[:8]}"
    words = [document, *place.store_arguments(os.environ), *repeated]
    return f"tools/bazel run //tools/launcher -- relaunch {shlex.join(words)}"
