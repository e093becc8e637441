"""Launching on the local Iris: plan, submit once, follow, verify."""

import json
import os
import shutil
import sys
import time
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.existing_outputs import contradiction
from tools.launcher.cli.experiment_files import ExperimentFiles
from tools.launcher.cli.local_environment import LocalEnvironment, local_environment
from tools.launcher.cli.progress_display import follow_on
from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.local.control import ensure_running, status
from tools.launcher.iris.local.shapes import GangShape, check_offered
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.observe.progress import FollowEnd, follow
from tools.launcher.observe.render_text import show_verification
from tools.launcher.observe.verify import record_verification, verify_run
from tools.launcher.render.plan import plan_text
from tools.launcher.store.bundles import BUNDLE_PREFIX, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.records import RunKey, RunRecord, list_records, load_record, record_prefix
from tools.launcher.submit.code_archive import make_code_archive
from tools.launcher.submit.machine import SubmitOutcome, SubmitState, decided_before, submit_once
from tools.launcher.submit.relaunch import relaunch_ordinal, wait_until_quiet
from tools.launcher.submit.request import LaunchFacts, coordinator_request, run_key
from tools.launcher.submit.settle import settle
from tools.launcher.submit.source_state import SourceState, read_source_state

FULL_DISK_BYTES = 2**20
"""Free space below which the local Iris can't write its database."""

_SAID = {
    SubmitState.SUBMITTED: "submitted",
    SubmitState.ADOPTED: "already submitted: following it",
}
_REFUSALS = (SubmitState.CONFLICT, SubmitState.REFUSED)


def add_launch_arguments(parser: Any) -> None:
    """Add the flags of a launch on the local Iris."""
    parser.add_argument("--stage", metavar="STAGE", help="terminal stage; must be one of the graph's")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the plan and the exact request, submit nothing"
    )
    parser.add_argument("--detach", action="store_true", help="return after the submission")
    parser.add_argument(
        "--relaunch",
        action="store_true",
        help="start a new attempt of a document whose last attempt has ended",
    )


def launch_locally(files: ExperimentFiles, flags: Any) -> int:
    """Bring one run of the document to its end on the local Iris and verify it.

    Args:
        files: the built experiment.
        flags: of `add_launch_arguments`.

    Returns:
        an exit status.
    """
    here = local_environment(os.environ)
    stage = flags.stage or files.graph["default_stage"]
    if stage not in files.graph["stages"]:
        sys.stderr.write(
            f"error: --stage={stage} does not end this graph. Its stages: {', '.join(sorted(files.graph['stages']))}\n"
        )
        return exit_codes.USAGE
    sys.stdout.write(plan_text(files.plan))
    allocation = files.plan.allocation
    shape = GangShape(
        gpu_variant=str(allocation["gpu_variant"]),
        gpus_per_node=int(allocation["gpus_per_node"]),
        num_nodes=int(allocation["num_nodes"]),
    )
    check_offered(shape)
    source = read_source_state(os.environ)
    earlier = _earlier(here, files, stage)
    ordinal = max((record.key.ordinal for record in earlier), default=1)
    if flags.dry_run:
        _print_request(files, _facts(files, stage, ordinal, here))
        return exit_codes.OK
    if not flags.relaunch:
        newest = next((record for record in earlier if record.key.ordinal == ordinal), None)
        decided = None if newest is None else decided_before(newest, files.bundle)
        if decided is not None:
            # Of a store that was cleaned: what the run was meant to do is read from its bundle.
            put_content(here.store(), BUNDLE_PREFIX, pack(files.bundle))
            return _finish(decided, here, None, source)

    contradicted = contradiction(files.bundle.graph_json, stage, here.object_root())
    if contradicted is not None:
        sys.stderr.write(f"refused: {contradicted}. Nothing was submitted\n")
        return exit_codes.REFUSED
    cluster = ensure_running(here.state, shape=shape, on_progress=lambda line: print(line, flush=True))
    if cluster.note:
        print(cluster.note)
    print(
        f"local Iris: {cluster.url} (process {cluster.pid}, {'running' if cluster.reused else 'started'})",
        flush=True,
    )
    with connect(cluster.url) as gateway:
        if flags.relaunch:
            settled = [settle(here.store(), gateway, record, source.who) for record in earlier]
            ordinal = relaunch_ordinal(settled)
            wait_until_quiet(gateway, settled)
        outcome = submit_once(
            here.store(),
            gateway,
            files.bundle,
            _facts(files, stage, ordinal, here),
            source,
            make_code_archive(),
        )
        if outcome.state in (SubmitState.SUBMITTED, SubmitState.ADOPTED):
            print(f"coordinator: {outcome.job_id} ({_SAID[outcome.state]})", flush=True)
            if flags.detach:
                print(
                    f"detached: follow it with `tools/bazel run //tools/launcher -- status {outcome.key.experiment}`"
                )
                return exit_codes.OK
            return _follow(outcome.key, here, gateway, source)
        return _finish(outcome, here, gateway, source)


def _facts(files: ExperimentFiles, stage: str, ordinal: int, here: LocalEnvironment) -> LaunchFacts:
    return LaunchFacts(
        experiment_name=files.graph["experiment_name"],
        stage=stage,
        default_stage=files.graph["default_stage"],
        ordinal=ordinal,
        cluster="local",
        store_url=here.store_url,
        object_root_url=here.object_root_url,
        coordinator_timeout_hours=files.graph["coordinator_timeout_hours"],
        rehearsal_variables={
            name: value for name, value in os.environ.items() if name.startswith("SLIPWAY_REHEARSAL_")
        },
    )


def _earlier(here: LocalEnvironment, files: ExperimentFiles, stage: str) -> list[RunRecord]:
    key = run_key(_facts(files, stage, 1, here), files.digests.launch)
    return [
        record
        for record in list_records(here.store(), key.experiment)
        if record.key.launch_digest == key.launch_digest
    ]


def _print_request(files: ExperimentFiles, facts: LaunchFacts) -> None:
    request: JobRequest = coordinator_request(
        facts,
        launch_digest=files.digests.launch,
        bundle_digest=sha256_hex(pack(files.bundle)),
        code=make_code_archive(),
    )
    shown = request.model_dump(mode="json", exclude={"files"})
    shown["files"] = {
        name: f"{len(data)} bytes, sha256:{sha256_hex(data)}" for name, data in request.files.items()
    }
    print(f"dry run: nothing is submitted. Bundle: {BUNDLE_PREFIX}; request to Iris:")
    print(json.dumps(shown, indent=2))


def _follow(key: RunKey, here: LocalEnvironment, gateway: IrisGateway, source: SourceState) -> int:
    looks = follow(
        here.store(), key, here.object_root(), gateway, sleep=lambda seconds: wait_on_disk(here, seconds)
    )
    last = follow_on(sys.stdout, looks)
    if last.end in (FollowEnd.UNREACHABLE, FollowEnd.COORDINATOR_SILENT):
        sys.stderr.write(
            f"error: {last.message}. The local Iris: {status(here.state).note}. Launch again: that starts it if "
            "need be and finds out what became of the run\n"
        )
        return exit_codes.UNKNOWN
    record = load_record(here.store(), key)
    if record is None:
        raise AssertionError(f"{key}: the record vanished from the store")
    return _verify(settle(here.store(), gateway, record, source.who), here, gateway, source)


def wait_on_disk(here: LocalEnvironment, seconds: float) -> None:
    """Wait, unless the disk is full: then Iris can write no change of state down and answers the old one
    for ever.

    Raises:
        LocalClusterError: the disk of the state folder is full.
    """
    if shutil.disk_usage(here.state).free < FULL_DISK_BYTES:
        raise LocalClusterError(
            f"the disk of the state folder {here.state} is full, and neither the local Iris nor the run can go "
            "on. Free some space, then launch again: that finds out what became of the run"
        )
    time.sleep(seconds)


def _finish(
    outcome: SubmitOutcome, here: LocalEnvironment, gateway: IrisGateway | None, source: SourceState
) -> int:
    """End a launch that starts nothing: finished before, failed before, refused, or not known."""
    if outcome.state is SubmitState.FINISHED_BEFORE:
        print(f"coordinator: {outcome.message}")
        return _verify(outcome.record, here, gateway, source)
    sys.stderr.write(f"{'refused' if outcome.state in _REFUSALS else 'error'}: {outcome.message}\n")
    if outcome.state in _REFUSALS:
        return exit_codes.REFUSED
    return exit_codes.FAILED if outcome.state is SubmitState.FAILED_BEFORE else exit_codes.UNKNOWN


def _verify(
    record: RunRecord, here: LocalEnvironment, gateway: IrisGateway | None, source: SourceState
) -> int:
    print(f"coordinator job: {record.coordinator_job_id}")
    for child in record.child_job_ids:
        print(f"child job: {child}")
    print(f"recipe digest: sha256:{record.recipe_digest}")
    print(f"launch digest: sha256:{record.launch_digest}")
    print(f"record: {here.store_url}/{record_prefix(record.key)}")
    print(f"files: s3://, gs:// and local:// addresses are folders below {here.object_root_url}")
    if record.reason:
        sys.stderr.write(f"run {record.state.value}: {record.reason}\n")
        if _may_go_better(record):
            sys.stderr.write(
                "to try the same document again: the same command with --relaunch (through Bazel: "
                "`-- --relaunch`); it resumes from the newest whole checkpoint\n"
            )
    verification = verify_run(record, here.store(), here.object_root(), gateway)
    record_verification(here.store(), record.key, source.who, verification)
    show_verification(verification, sys.stdout)
    return exit_codes.OK if verification.verified else exit_codes.FAILED


def _may_go_better(record: RunRecord) -> bool:
    """True if a step failed, or the coordinator was ended; not if the plan itself is what was refused."""
    failures = [event.facts for event in record.events if event.kind == "failed"]
    return bool(failures and failures[-1].keys() & {"step", "interrupted", "job_id"})
