"""What status and verify say of a run as Markdown, for an issue or a pull request."""

from collections.abc import Iterable

from tools.launcher.documents.markdown import in_markdown
from tools.launcher.observe.render_text import REHEARSAL_NOTE, judged_line, status_rows
from tools.launcher.observe.status import RunStatus
from tools.launcher.observe.verify import Verification
from tools.launcher.store.records import RunRecord

MARK = "<!-- written by `launcher` from the record of a run -->"
"""First line of every such file: what begins otherwise is somebody's own."""


def status_markdown(record: RunRecord, status: RunStatus) -> str:
    """Return where a run stands, and what it was launched from."""
    return _page(record, [*_table("", "", _rows(record, status_rows(status)))])


def verification_markdown(record: RunRecord, verification: Verification, notes: Iterable[str]) -> str:
    """Return whether a run did what it was launched for, with the evidence.

    Args:
        record: the run's.
        verification: the answer.
        notes: what is to be known of it besides.
    """
    answer = "yes" if verification.verified else "no"
    state = record.state.value + (f": {record.reason}" if record.reason else "")
    facts = []
    for fact in verification.facts:
        seen = fact.seen if fact.ok else f"{fact.seen} (expected: {fact.expected})"
        facts.append((fact.name, "yes" if fact.ok else "no", seen, ", ".join(fact.evidence)))
    said = [REHEARSAL_NOTE] if verification.rehearsal else []
    return _page(
        record,
        [
            f"**Verified: {answer}**",
            "",
            in_markdown(judged_line(verification)),
            "",
            *_table("", "", _rows(record, [("state", state)])),
            "",
            *_table("fact", "holds", facts, "seen", "evidence"),
            *(f"\n{in_markdown(note)}" for note in [*said, *notes]),
        ],
    )


def _rows(record: RunRecord, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows, without what the heading says, and then the digests and commits of the launch."""
    topology = record.topology
    gang = f"{topology.get('num_nodes')} x {topology.get('gpus_per_node')} {topology.get('gpu_variant')}"
    launched_from = [
        ("recipe digest", f"sha256:{record.recipe_digest}" if record.recipe_digest else ""),
        ("launch digest", f"sha256:{record.launch_digest}"),
        ("runtime", f"{record.runtime or ''} {record.runtime_commit or ''}".strip()),
        ("cluster", record.cluster or ""),
        ("nodes", gang if topology else ""),
        ("source", _source(record)),
        ("artifacts", ", ".join(record.artifacts)),
    ]
    return [row for row in rows if row[0] != "run"] + [row for row in launched_from if row[1]]


def _source(record: RunRecord) -> str:
    if record.source_commit is None:
        return ""
    return f"{record.source_commit} with changes" if record.dirty else record.source_commit


def _page(record: RunRecord, lines: list[str]) -> str:
    return "\n".join([MARK, "", f"## Run {in_markdown(record.key.short_name)}", "", *lines]) + "\n"


def _table(first: str, second: str, rows: Iterable[tuple[str, ...]], *more: str) -> list[str]:
    heads = (first, second, *more)
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return lines + ["| " + " | ".join(in_markdown(value) for value in row) + " |" for row in rows]
