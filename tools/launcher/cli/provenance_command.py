"""`provenance`: where a launch came from."""

import json
import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.run_place import add_store_and_run_arguments, store_of
from tools.launcher.cli.run_selection import NAMING, SHORTENING, find_run
from tools.launcher.documents.printable import printable_lines
from tools.launcher.submit.provenance import provenance_key

DESCRIPTION = f"""Prints the in-toto statement of the newest run on record, or of the one that is named: what was
submitted, from which sources, runtime, model and data, by whom. docs/provenance.md describes it. It is unsigned.
A terminal gets it indented; a file or a program gets the bytes that are stored, on one line.

{NAMING} {SHORTENING}

examples:
  tools/bazel run //tools/launcher -- provenance
  tools/bazel run //tools/launcher -- provenance cat_count/2f1bbe6d/1 --store=gs://lab/slipway > statement.json"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `provenance`."""
    add_store_and_run_arguments(parser)


@reporting
def run(flags: Any) -> int:
    """Print one statement; see DESCRIPTION."""
    store = store_of(flags, os.environ)
    record = find_run(store, flags.run)
    key = provenance_key(record.key)
    if not store.exists(key):
        sys.stderr.write(
            f"error: {record.key} has no provenance in {store.url}: it was not submitted, or by an earlier version "
            "of the launcher. Launch it again, which writes what is missing\n"
        )
        return exit_codes.FAILED
    stored = store.get(key).decode()
    if sys.stdout.isatty():
        shown = json.dumps(json.loads(stored), indent=2, ensure_ascii=False)
        sys.stdout.write(printable_lines(shown) + "\n")
    else:
        sys.stdout.write(stored)
    return exit_codes.OK
