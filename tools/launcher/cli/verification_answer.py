"""The final answer about a run that has ended: written to its record, shown, made an exit status."""

import sys

from tools.launcher.cli import exit_codes
from tools.launcher.observe.render_text import NOT_RECORDED, show_verification
from tools.launcher.observe.verify import Verification, answer_on_record, record_verification
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord


def answered(store: ObjectStore, record: RunRecord, who: str, verification: Verification) -> int:
    """Record and show a verification, and return the exit status.

    One that could not read everything changes nothing: what somebody found who could, stands.

    Raises:
        StoreError: the store failed.
    """
    written = record_verification(store, record.key, who, verification)
    show_verification(verification, sys.stdout)
    if written is not None:
        return exit_codes.OK if verification.verified else exit_codes.FAILED
    print(f"note: {NOT_RECORDED}")
    standing = answer_on_record(record)
    if standing is None:
        return exit_codes.FAILED
    yes, word = (True, "yes") if standing.kind == "verified" else (False, "no")
    print(f"note: the answer on record stands: {word}, found by {standing.by} at {standing.at}")
    return exit_codes.OK if yes else exit_codes.FAILED
