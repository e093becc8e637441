"""`lint`: judges launch documents, rendered here or written by hand."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.lint_inputs import (
    LintInputs,
    WrongUsage,
    printable_path,
    read_document,
    require_files,
)
from tools.launcher.cli.lint_report import REPORTS, Judged
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.preflight.checks.document.reading import unreadable
from tools.launcher.preflight.judge import judge as judge_subject
from tools.launcher.preflight.registry import CHECKS

DESCRIPTION = """Judges launch documents before anything starts: every violation with its place and repair.

A document is judged in source or in resolved form. Facts come from the cards that are given and from the
runtime manifest: the given one (of several, the one with the document's runtime.launcher_commit), else the
project's manifest of that commit, else the newest one. A single card of a kind serves every document; of
several, the one whose export (model, dataset) or configuration (cluster) the document names exactly. A
dataset card is asked for training and validation rows. A ledger says what was published under the document's
name and version. What cannot be checked is listed.

Exit status: 0 all accepted (warnings may remain), 1 any rejected, 2 wrong usage: a flag, a card that cannot be
read, or a document that does not exist. A document whose content cannot be read is rejected (DOC-01).

examples:
  tools/bazel run //tools/launcher:lint -- launch.yaml
  tools/bazel run //tools/launcher:lint -- --format=json --model_card=qwen3.yaml a.yaml b.yaml
  render | tools/bazel run //tools/launcher:lint -- --format=sarif -"""


_FACTS = {
    "model": "model_card",
    "cluster": "cluster_card",
    "dataset": "dataset_card",
    "runtime_manifest": "runtime_manifest",
}
"""Kind of a file with facts -> the flag that takes it. Judged as a launch document, every key of it is unknown."""


def add_arguments(parser: Any) -> None:
    """Add the flags of `lint`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="launch document; `-` is standard input")
    parser.add_argument("--format", choices=tuple(REPORTS), default="text", help="form of the report")
    for name, what in (
        ("runtime_manifest", "what the runtime accepts"),
        ("model_card", "facts about the policy's model"),
        ("cluster_card", "facts about the cluster"),
        ("dataset_card", "facts about the data"),
        ("ledger", "what was published under fixed versions, a versions.lock.yaml"),
    ):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="FILE", help=f"{what}; repeatable"
        )


def run(flags: Any) -> int:
    """Judge every file; see DESCRIPTION."""
    try:
        require_files(flags.files)
        inputs = LintInputs(
            runtime_manifests=flags.runtime_manifest,
            model_cards=flags.model_card,
            cluster_cards=flags.cluster_card,
            dataset_cards=flags.dataset_card,
            ledgers=flags.ledger,
        )
    except WrongUsage as wrong:
        sys.stderr.write(f"lint: {wrong}\n")
        return exit_codes.USAGE
    rejected = REPORTS[flags.format](_judged(flags.files, inputs))
    return exit_codes.FAILED if rejected else exit_codes.OK


def judge(path: str, data: bytes, inputs: LintInputs) -> Judged:
    """Return the verdict on the bytes of one document, whatever they are.

    Args:
        path: how the report calls the document.
        data: its content.
        inputs: the cards and manifests of this call.
    """
    try:
        document = load_yaml_mapping(data, source=path)
        kind = document.get("kind")
        if isinstance(kind, str) and kind in _FACTS:
            raise DocumentError(
                path,
                "",
                f"this says `kind: {kind}`; a launch document has no kind",
                f"Name a launch document; the builds that use this file check it, and --{_FACTS[kind]} judges by it",
            )
    except DocumentError as error:
        return Judged(path, data, unreadable(error), None)
    chosen = inputs.choose(document, data)
    return Judged(path, data, judge_subject(chosen.subject, CHECKS), chosen)


def _judged(files: Sequence[str], inputs: LintInputs) -> Iterator[Judged]:
    for file in files:
        path = printable_path(file)
        try:
            data = read_document(file)
        except DocumentError as error:
            yield Judged(path, b"", unreadable(error), None)
            continue
        yield judge(path, data, inputs)
