"""A run that has ended: verified, the answer written to its record, and both shown.

What verifying needs is imported when it begins: a launch gets here long after it started.
"""

import contextlib
import os
import shlex
import sys

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.documents.printable import printable, printable_lines
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, RunState, record_prefix


def verify_and_show(
    record: RunRecord,
    place: LaunchPlace,
    store: ObjectStore,
    gateway: IrisGateway | None,
    who: str,
    *,
    again: str | None = None,
) -> int:
    """Verify a run that has ended, write the answer to its record, show both, and return the exit status.

    Args:
        record: of the run.
        place, store: where it is.
        gateway: the scheduler; None if the record alone decided.
        who: who asks.
        again: the command line that relaunches it, but for --authorize; None: one that names the run.

    Raises:
        StoreError: the store failed, or what the run left cannot be read from here.
    """
    from tools.launcher.cli.run_objects import objects_of
    from tools.launcher.cli.run_place import RunPlace, looking
    from tools.launcher.cli.verification_answer import answered
    from tools.launcher.observe.verify import is_open, verify_run

    print(printable(f"coordinator job: {record.coordinator_job_id}"))
    for child in record.child_job_ids:
        print(printable(f"child job: {child}"))
    print(printable(f"recipe digest: sha256:{record.recipe_digest}"))
    print(f"launch digest: sha256:{record.launch_digest}")
    print(f"record: {place.store_url}/{record_prefix(record.key)}")
    if place.object_root_url is not None:
        print(f"files: s3://, gs:// and local:// addresses are folders below {place.object_root_url}")
    if record.state is RunState.FAILED and record.cancel_requests:
        asked = record.cancel_requests[-1].facts.get("authorized")
        sys.stderr.write(
            printable_lines(f"its cancellation was asked for by {asked}, and is not seen to be done\n")
        )
    if record.reason:
        sys.stderr.write(f"run {record.state.value}: {printable_lines(record.reason)}\n")
        if _may_go_better(record):
            named = f"tools/bazel run //tools/launcher -- relaunch {_named(record, place)}"
            sys.stderr.write(
                f'to try the same document again: {again or named} --authorize="who: why"; it resumes from the '
                "newest whole checkpoint\n"
            )
    with contextlib.ExitStack() as stack:
        if gateway is None and not place.is_local:
            # The record alone decided the launch; what Iris still knows of its tasks belongs to the answer.
            gateway, _ = stack.enter_context(looking(RunPlace(place=place, elsewhere="")))
        with said_if_slow("reading what the run left"):
            verification = verify_run(record, store, place.objects(), gateway, objects=objects_of(place))
    status = answered(store, record, who, verification)
    if not is_open(record, verification):
        return status
    sys.stderr.write(
        f"error: {record.key.short_name} succeeded, and whether it is verified is not known: what it left cannot be "
        "read from here. Ask again where it can: tools/bazel run //tools/launcher -- verify "
        f"{_named(record, place)}\n"
    )
    return exit_codes.UNKNOWN


def _named(record: RunRecord, place: LaunchPlace) -> str:
    return shlex.join([record.key.short_name, *place.store_arguments(os.environ)])


def _may_go_better(record: RunRecord) -> bool:
    """True if a step failed, or the coordinator was ended; not if the plan itself is what was refused."""
    failures = [event.facts for event in record.events if event.kind == "failed"]
    return bool(failures and failures[-1].keys() & {"step", "interrupted", "job_id"})
